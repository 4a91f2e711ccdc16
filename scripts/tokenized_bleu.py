"""BLEU of lowercased, Moses-tokenised text, as Wu et al. (ACL 2021) report it on Multi30k.

    python scripts/tokenized_bleu.py HYPOTHESES REFERENCES

Both files hold plain text, one sentence per line. Both are converted to lower case, normalised as
by Moses' normalize-punctuation.perl and tokenised as by Moses' tokenizer.perl without splitting
hyphens (no -a); the package sacremoses does the last two steps. BLEU then compares these tokens
without smoothing, as multi-bleu.perl and fairseq's scorer do. The German references of Multi30k's
test_2016_flickr have 12,103 tokens, the reference length that fairseq printed for Wu et al. If the
text is converted to lower case after the tokeniser, they have 12,102.

This BLEU depends on the tokeniser. Use it only to compare with that paper. For all other purposes
use the scores of `translate test`. The script needs sacremoses: pip install -e ".[bleu]"
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from sacrebleu.metrics import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from translate.errors import UserError
from translate.text.text_files import read_lines


def tokenized(lines: Sequence[str], language: str = "de") -> list[str]:
    """Return each line in lower case, with normalised punctuation, its tokens joined by spaces."""
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    # `escape` writes & as &amp; on both sides alike, as tokenizer.perl does. No count changes.
    return [
        tokenizer.tokenize(
            normalizer.normalize(line.lower()),
            aggressive_dash_splits=False,
            escape=True,
            return_str=True,
        )
        for line in lines
    ]


def tokenized_bleu(hypotheses: Path, references: Path, language: str = "de") -> str:
    """Return one line: BLEU, n-gram precisions, brevity penalty, lengths and the signature.

    Raises:
        UserError: a file cannot be read or is empty, or the files differ in their line counts.
    """
    sides = [read_lines(hypotheses), read_lines(references)]
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise UserError(
            f"{hypotheses} has {len(sides[0]):,} lines and {references} has {len(sides[1]):,}: "
            "both must have the same number, at least one"
        )
    # `force` switches off the warning that the text is already tokenised. `lowercase` has no
    # effect on text in lower case, but it puts "case:lc" into the signature.
    bleu = BLEU(lowercase=True, tokenize="none", smooth_method="none", force=True)
    outputs, expected = (tokenized(side, language) for side in sides)
    result = bleu.corpus_score(outputs, [expected])
    score = result.format(signature=str(bleu.get_signature()))
    return f"{score}; tokens by sacremoses {version('sacremoses')}, {language}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hypotheses", type=Path, help="translations, one sentence per line")
    parser.add_argument("references", type=Path, help="their references; both may be compressed")
    parser.add_argument("--language", default="de", help="language of both files (default: de)")
    args = parser.parse_args()
    try:
        print(tokenized_bleu(args.hypotheses, args.references, args.language))
    except UserError as error:
        print(f"tokenized_bleu: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
