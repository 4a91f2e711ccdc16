"""BLEU of lowercased, Moses-tokenised text, as Wu et al. (ACL 2021) report it on Multi30k.

    python scripts/tokenized_bleu.py HYPOTHESES REFERENCES

Both files hold plain text, a sentence a line, and go the same way: lower case, then Moses'
normalize-punctuation.perl, then its tokenizer.perl, hyphens left alone (no -a), by sacremoses.
BLEU counts these tokens as they are and is not smoothed, like multi-bleu.perl and fairseq's own
scorer. The references of Multi30k's German test_2016_flickr have 12,103 tokens then, the length
that fairseq showed Wu et al.; in lower case only after the tokeniser they have 12,102.

Such a number depends on the tokeniser and is for comparison with theirs; `translate test` has the
others. Needs sacremoses: pip install -e ".[bleu]"
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
    """Lower case, plain punctuation, tokens with a space between them."""
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    # Moses writes ' and & as &apos; and &amp;: on both sides alike, so it changes no count.
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
    """One line: BLEU, n-gram precisions, brevity penalty, lengths, and how it was counted.

    Raises:
        UserError: a file that cannot be read, nothing in it, unequal numbers of lines.
    """
    sides = [read_lines(hypotheses), read_lines(references)]
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise UserError(
            f"{hypotheses} has {len(sides[0]):,} lines and {references} {len(sides[1]):,}: "
            "line n of one must belong to line n of the other"
        )
    # `force`: tokenised text is meant here, so no warning about it. `lowercase` changes nothing
    # any more, but the signature says it.
    bleu = BLEU(lowercase=True, tokenize="none", smooth_method="none", force=True)
    outputs, expected = (tokenized(side, language) for side in sides)
    result = bleu.corpus_score(outputs, [expected])
    score = result.format(signature=str(bleu.get_signature()))
    return f"{score}; tokens by sacremoses {version('sacremoses')}, {language}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hypotheses", type=Path, help="what came out, a sentence a line")
    parser.add_argument("references", type=Path, help="line by line; plain text or gzip, both")
    parser.add_argument("--language", default="de", help="whose abbreviations Moses knows (de)")
    args = parser.parse_args()
    try:
        print(tokenized_bleu(args.hypotheses, args.references, args.language))
    except UserError as error:
        print(f"tokenized_bleu: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
