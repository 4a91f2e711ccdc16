"""scripts/tokenized_bleu.py: BLEU of Moses tokens in lower case."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from translate.errors import UserError

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

from tokenized_bleu import main, tokenized, tokenized_bleu


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("Ein Mann, der z.B. schläft.", "ein mann , der z.b. schläft ."),
        ("Ein T-Shirt", "ein t-shirt"),  # hyphens do not split a word
        ("„Bart“ & Co. rasiert seinen Bart.", "&quot; bart &quot; &amp; co. rasiert seinen bart ."),
        ("", ""),
    ],
)
def test_tokens_are_those_of_moses_in_lower_case(line, tokens):
    assert tokenized([line]) == [tokens]


def files(folder: Path, hypotheses: list[str], references: list[str]) -> tuple[Path, Path]:
    paths = folder / "hypotheses", folder / "references"
    for path, lines in zip(paths, (hypotheses, references), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def test_the_score_is_printed_with_its_signature(tmp_path, monkeypatch, capsys):
    references = ["Ein kleiner Mann schläft.", "Zwei Hunde, ein Ball."]
    paths = files(tmp_path, ["ein Mann schläft.", "Zwei Hunde, ein Ball."], references)
    monkeypatch.setattr(sys, "argv", ["tokenized_bleu.py", *map(str, paths)])
    assert main() == 0
    # 10 of 10 words, 7 of 8 pairs, 5 of 6 and 3 of 4; exp(1 - 11 / 10) = 0.905
    assert capsys.readouterr().out.startswith(
        "BLEU|nrefs:1|case:lc|eff:no|tok:none|smooth:none|version:"
    )
    score = tokenized_bleu(*paths).partition(" = ")[2]
    assert score.startswith(
        "77.81 100.0/87.5/83.3/75.0 (BP = 0.905 ratio = 0.909 hyp_len = 10 ref_len = 11); "
        "tokens by sacremoses "
    )


def test_unequal_line_counts_and_empty_files_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"has 1 lines and .* has 2: both must have the same"):
        tokenized_bleu(*files(tmp_path, ["a"], ["a", "b"]))
    with pytest.raises(UserError, match=r"has 0 lines and .* has 0: "):
        tokenized_bleu(*files(tmp_path, [], []))
