"""Count in how many sentences "it" attends to the right noun, over the pronoun challenge.

    python scripts/pronouns.py --model runs/tiny [--output pronouns.png]

In "The cat chased the ball because it ...", the German pronoun is "er" if "it" means the ball (der
Ball) and "sie" if "it" means the cat (die Katze). So the German pronoun tells which noun is meant.
The script takes the sentences of data/challenge/pronouns.tsv with two nouns of different genders
before one "it". For every head it prints the share of sentences in which the right noun gets more
attention than the wrong noun: in the encoder at the word "it", and in cross-attention while the
decoder writes the German pronoun.

How to read the numbers: compare a head with the same head of an untrained model. Also compare the
head with the share that "always the nearer noun" reaches, because a head that attends by position
alone reaches that share too. The number in brackets is the attention of both nouns together; if the
number is near 0, the head attends to other words and its share means nothing. At the end the script
translates the sentences and prints how many have the right pronoun, by the number of words between
the noun and "it".
"""

from __future__ import annotations

import argparse
import re
import sys
from itertools import product
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch
import yaml
from matplotlib.figure import Figure
from torch import Tensor

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


class Sentence(NamedTuple):
    """A sentence in which "it" is one of two nouns of different genders."""

    source: str
    target: str
    pronoun: str  # as written in the target: er, sie or es
    right: str  # the English noun that is meant
    wrong: str
    distance: int  # words between the right noun and "it"
    nearer: bool  # the right noun is nearer to "it" than the wrong one


def read_sentences() -> list[Sentence]:
    """Read the challenge; keep the sentences whose German pronoun tells which noun is meant."""
    classes = yaml.safe_load(LEXICON.read_text(encoding="utf-8"))["nouns"].values()
    genders = {noun["en"]: noun["gender"] for nouns in classes for noun in nouns}
    found = []
    for line in CHALLENGE.read_text(encoding="utf-8").splitlines():
        source, target = line.split("\t")
        words = re.findall(r"\w+", source)
        lowercase = [word.lower() for word in words]
        pronouns = [word for word in re.findall(r"\w+", target) if word.lower() in GENDERS]
        if lowercase.count("it") != 1 or {"he", "she"} & set(words) or len(pronouns) != 1:
            continue
        before = words[: lowercase.index("it")]
        nouns = [word for word in before if word in genders]
        right = [noun for noun in nouns if genders[noun] == GENDERS[pronouns[0].lower()]]
        if len(nouns) == 2 and len(right) == 1:
            (wrong,) = set(nouns) - set(right)
            distance = len(before) - 1 - before.index(right[0])
            nearer = nouns[-1] == right[0]
            found.append(Sentence(source, target, pronouns[0], right[0], wrong, distance, nearer))
    return found


def attention_to_nouns(
    model: Transformer, tokenizer: Tokenizer, sentences: list[Sentence], kind: Kind
) -> Tensor:
    """Return the weights of the right and the wrong noun in each head, (N, L, H, 2).

    N sentences, L layers, H heads.
    """
    blocks = model.encoder if kind == "encoder" else model.decoder
    weights = []
    for sentence in sentences:
        ids = tokenizer.encode(sentence.source), tokenizer.encode(sentence.target)
        for layer in range(len(blocks)):
            maps = attention_maps(model, tokenizer, *ids, kind=kind, layer=layer)
            rows = [word.lower() for word in maps.rows]
            row = rows.index("it" if kind == "encoder" else sentence.pronoun.lower())
            nouns = [maps.columns.index(noun) for noun in (sentence.right, sentence.wrong)]
            weights.append(maps.weights[:, row, nouns])
    return torch.stack(weights).unflatten(0, (len(sentences), len(blocks)))


def correct_by_distance(translator: Translator) -> dict[int, list[bool]]:
    """Translate the sentences; say of each translation whether it has the right pronoun.

    The keys, in ascending order, are the numbers of words between "it" and its noun.
    """
    sentences = sorted(read_sentences(), key=attrgetter("distance"))
    outputs = translator.translate([sentence.source for sentence in sentences])
    correct: dict[int, list[bool]] = {}
    for sentence, output in zip(sentences, outputs, strict=True):
        found = sentence.pronoun in re.findall(r"\w+", output)
        correct.setdefault(sentence.distance, []).append(found)
    return correct


def share_heatmap(shares: dict[str, Tensor]) -> Figure:
    """Draw one panel of (layers, heads) for each entry; white is 0.5, the share by chance."""
    figure = Figure(figsize=(1.5 + 2.6 * len(shares), 3.0), dpi=100, layout="constrained")
    panels = figure.subplots(1, len(shares), squeeze=False).ravel()
    for axes, (name, share) in zip(panels, shares.items(), strict=True):
        layers, heads = share.shape
        image = axes.imshow(share.numpy(), cmap="RdBu", vmin=0, vmax=1)
        for layer, head in product(range(layers), range(heads)):
            text = f"{share[layer, head]:.0%}"
            axes.text(head, layer, text, ha="center", va="center", fontsize="small")
        axes.set_xticks(range(heads), range(1, heads + 1))
        axes.set_yticks(range(layers), range(1, layers + 1))
        axes.set(xlabel="head", ylabel="layer")
        axes.set_title(name, fontsize="small")
    figure.colorbar(image, ax=list(panels), label="share of sentences")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="a run folder or checkpoint")
    parser.add_argument("--output", type=Path, help="a .png file for heatmaps of the shares")
    args = parser.parse_args()
    if args.output and args.output.suffix != ".png":
        parser.error(f"--output {args.output}: the name must end in .png")
    try:
        if args.output:
            check_writable(args.output)
        translator = Translator.load(args.model)
    except UserError as error:
        sys.exit(f"pronouns: {error}")
    torch.manual_seed(1)
    models = {"trained": translator.model, "untrained": Transformer(translator.model.config).eval()}
    sentences = read_sentences()
    nearer = sum(sentence.nearer for sentence in sentences) / len(sentences)
    print(f'{len(sentences)} sentences with two nouns of different genders before one "it"')
    print(f"always choosing the nearer noun would be right in {nearer:.0%}")
    shares = {}
    for kind, title in KINDS.items():
        print(f"\n{title}: share of sentences in which the right noun gets more attention")
        print("(in brackets: mean attention to both nouns together)")
        for name, model in models.items():
            weights = attention_to_nouns(model, translator.tokenizer, sentences, kind)
            share = (weights[..., 0] > weights[..., 1]).float().mean(0)  # (L, H)
            both = weights.sum(-1).mean(0)  # (L, H)
            shares[f"{title},\n{name}"] = share
            for layer, rows in enumerate(zip(share, both, strict=True), 1):
                heads = "  ".join(f"{x:4.0%} ({y:.2f})" for x, y in zip(*rows, strict=True))
                print(f"  {name:<9}  layer {layer}   heads {heads}")
    print('\ntranslations with the right pronoun, by the words between the noun and "it"')
    correct = correct_by_distance(translator)
    for distance, each in correct.items():
        print(f"  {distance:2} words   {fmean(each):4.0%} of {len(each)}")
    print(f"  all        {sum(map(sum, correct.values()))} of {len(sentences)}")
    if args.output:
        write_atomically(args.output, rendered(share_heatmap(shares), "png"))


if __name__ == "__main__":
    main()
