"""Where does "it" look? The share of sentences in which a head prefers the right noun.

    python scripts/pronouns.py --model runs/tiny [--output pronouns.png]

"The dog chased the ball because it rolled away" becomes "er" if "it" is the ball (der Ball) and
also if it is the dog (der Hund), so from such a sentence nothing can be told. Where the two nouns
have unlike genders, the German pronoun says which one is meant. Of those sentences of the pronoun
challenge this counts in how many a head gives that noun more weight than the other one: in the
encoder while it reads "it", and in cross-attention while the decoder writes the German pronoun.
Beside it stands the same model before training, and what always taking the nearer noun would give:
a head that looks at a place and not at a meaning reaches that too. Where both nouns together get
next to nothing, the comparison of the two says nothing. Last, how many of the sentences are
translated with the right pronoun, by how many words lie between the noun and "it".
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy
import torch
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from translate.decoding.translator import Translator
from translate.errors import UserError
from translate.insight.attention import Kind, attention_maps
from translate.insight.plots import rendered
from translate.io import check_writable, write_atomically
from translate.model.transformer import Transformer
from translate.text.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[1]
CHALLENGE = ROOT / "data/challenge/pronouns.tsv"
LEXICON = ROOT / "data/lexicon.yaml"
GENDERS = {"er": "m", "sie": "f", "es": "n"}
KINDS: dict[Kind, str] = {
    "encoder": 'encoder, reading "it"',
    "cross": "cross-attention, writing the pronoun",
}


class Case(NamedTuple):
    """A sentence in which "it" is one of two nouns of unlike genders."""

    source: str
    target: str
    pronoun: str  # the German one
    right: str
    wrong: str
    between: int  # words between the right noun and "it"
    nearer: bool  # the right noun is the nearer one


def cases(path: Path = CHALLENGE, lexicon: Path = LEXICON) -> Iterator[Case]:
    """Those of the challenge that tell: one "it", two nouns before it, one of them meant."""
    classes = yaml.safe_load(lexicon.read_text(encoding="utf-8"))["nouns"].values()
    genders = {noun["en"]: noun["gender"] for nouns in classes for noun in nouns}
    for line in path.read_text(encoding="utf-8").splitlines():
        source, target = line.split("\t")
        words = re.findall(r"\w+", source)
        if [word.lower() for word in words].count("it") != 1 or {"he", "she"} & set(words):
            continue
        before = words[: [word.lower() for word in words].index("it")]
        nouns = [word for word in before if word in genders]
        pronouns = [word for word in re.findall(r"\w+", target) if word.lower() in GENDERS]
        if len(nouns) != 2 or len(pronouns) != 1:
            continue
        meant = [noun for noun in nouns if genders[noun] == GENDERS[pronouns[0].lower()]]
        if len(meant) == 1:
            (other,) = set(nouns) - set(meant)
            between = len(before) - 1 - before.index(meant[0])
            nearer = nouns[-1] == meant[0]
            yield Case(source, target, pronouns[0], meant[0], other, between, nearer)


def noun_weights(model: Transformer, tokenizer: Tokenizer, case: Case, kind: Kind) -> torch.Tensor:
    """(L, H, 2): what each head gives the right noun, and the wrong one."""
    layers = len(model.encoder if kind == "encoder" else model.decoder)
    source, target = tokenizer.encode(case.source), tokenizer.encode(case.target)
    found = []
    for layer in range(layers):
        maps = attention_maps(model, tokenizer, source, target, kind=kind, layer=layer)
        asking = [word.lower() for word in maps.rows].index(
            "it" if kind == "encoder" else case.pronoun.lower()
        )
        nouns = [maps.columns.index(noun) for noun in (case.right, case.wrong)]
        found.append(maps.weights[:, asking, nouns])
    return torch.stack(found)


def by_distance(translator: Translator) -> list[dict[str, float]]:
    """Share of right pronouns by the "words" between "it" and its noun; "count" of sentences."""
    asked = list(cases())
    outputs = translator.translate([case.source for case in asked])
    found: dict[int, list[bool]] = {}
    for case, output in zip(asked, outputs, strict=True):
        right = case.pronoun in re.findall(r"\w+", output)
        found.setdefault(case.between, []).append(right)
    return [
        {"words": words, "right": sum(right) / len(right), "count": len(right)}
        for words, right in sorted(found.items())
    ]


def share_heatmap(shares: Mapping[str, torch.Tensor]) -> Figure:
    """A panel of (layers, heads) for each entry, values from 0 to 1; 0.5, a coin's, is white."""
    figure = Figure(figsize=(1.5 + 2.6 * len(shares), 3.0), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(1, len(shares), squeeze=False).ravel()
    for axes, (name, share) in zip(grid, shares.items(), strict=True):
        image = axes.imshow(share.numpy(), cmap="RdBu", vmin=0, vmax=1)
        for (row, column), value in numpy.ndenumerate(share.numpy()):
            axes.text(column, row, f"{value:.0%}", ha="center", va="center", fontsize="small")
        axes.set_xticks(range(share.shape[1]), [f"{head + 1}" for head in range(share.shape[1])])
        axes.set_yticks(range(share.shape[0]), [f"{layer + 1}" for layer in range(share.shape[0])])
        axes.set_xlabel("head")
        axes.set_ylabel("layer")
        axes.set_title(textwrap.fill(name, 26), fontsize="small")
    figure.colorbar(image, ax=list(grid), label="share of sentences")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="a run folder or checkpoint")
    parser.add_argument("--output", type=Path, help="a .png for the shares")
    args = parser.parse_args()
    if args.output and args.output.suffix != ".png":
        parser.error(f"--output {args.output}: its name must end in .png")
    try:
        if args.output:
            check_writable(args.output)
        translator = Translator.load(args.model)
    except UserError as error:
        sys.exit(f"pronouns: {error}")
    trained, tokenizer = translator.model, translator.tokenizer
    torch.manual_seed(1)
    untrained = Transformer(trained.config).eval()
    sentences = list(cases())
    nearer = sum(case.nearer for case in sentences) / len(sentences)
    print(f'{len(sentences)} sentences with two nouns of unlike genders before one "it".')
    print(f"Always the nearer noun: right in {nearer:.0%}.")
    shares = {}
    for kind, what in KINDS.items():
        print(f"\n{what}: share of sentences in which the right noun weighs more")
        print("(and the weight of both nouns together, mean)")
        for name, model in (("trained", trained), ("untrained", untrained)):
            weights = torch.stack(
                [noun_weights(model, tokenizer, case, kind) for case in sentences]
            )  # (N, L, H, 2)
            preferred = (weights[..., 0] > weights[..., 1]).float()  # (N, L, H)
            share, both = preferred.mean(dim=0), weights.sum(-1).mean(dim=0)  # (L, H)
            shares[f"{what}, {name}"] = share
            for layer, row in enumerate(zip(share.tolist(), both.tolist(), strict=True), 1):
                heads = "  ".join(f"{x:4.0%} ({y:.2f})" for x, y in zip(*row, strict=True))
                print(f"  {name:<9}  layer {layer}   heads {heads}")
            some = preferred.amax(dim=(1, 2)).mean().item()
            print(f"  {name:<9}  one at least of {share.numel()} heads   {some:.0%}")
    print("\ntranslations with the right pronoun, by the words between it and its noun")
    right = 0
    for each in by_distance(translator):
        print(f"  {each['words']:2} words   {each['right']:4.0%} of {each['count']}")
        right += round(each["right"] * each["count"])
    print(f"  together   {right} of {len(sentences)}")
    if args.output:
        write_atomically(args.output, rendered(share_heatmap(shares), "png"))


if __name__ == "__main__":
    main()
