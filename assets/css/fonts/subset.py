"""Make the site's web fonts: smaller cuts of the packages `@fontsource-variable/*` pinned in package-lock.json.

The published Latin files weigh 190 KB for the four faces a chapter shows; these weigh a bit over a third. Kept are the
letters that English and the names in it need, the punctuation and the few mathematical signs that the course writes
outside formulas, weights 400 to 700 (one weight for italics), kerning and tabular figures. The serif is renamed inside
the file, because its licence (SIL OFL 1.1) reserves the name "Source" for unmodified copies.

Run by hand after a font package changed, then commit the four files (needs `fonttools` and `brotli`, which the site's
build does not):

    python assets/css/fonts/subset.py
"""

from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

HERE = Path(__file__).resolve().parent
PACKAGES = HERE.parents[2] / "node_modules" / "@fontsource-variable"
FACES = {
    "edu-serif": "source-serif-4/files/source-serif-4-latin-wght-normal.woff2",
    "edu-serif-italic": "source-serif-4/files/source-serif-4-latin-wght-italic.woff2",
    "edu-sans": "inter/files/inter-latin-wght-normal.woff2",
    "edu-mono": "jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2",
}
LETTERS = [*range(0x20, 0x7F), *map(ord, "\xa0ÄÅÉÖØÜßàáäåçèéêíñóöøúü§©«»°±²³µ·¹¼½¾×÷")]
PUNCTUATION = [0x2009, 0x200A, *range(0x2010, 0x2016), *range(0x2018, 0x201F), 0x2022, 0x2026, 0x202F, 0x2039, 0x203A]
SIGNS = [0x2032, *range(0x2070, 0x208A), 0x20AC, *range(0x2190, 0x2194), 0x2202, 0x2206, 0x2211, 0x2212, 0x221A]
SIGNS += [0x221E, 0x2248, 0x2260, 0x2264, 0x2265]
FEATURES = ["kern", "mark", "mkmk", "ccmp", "locl", "tnum"]
WEIGHTS = {"edu-serif-italic": 400}
USUAL_WEIGHTS = (400, 700)
DIGITS = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
TABULAR = DIGITS | {"period", "comma", "minus", "plus"}


def subset(source: Path, family: str, weights: int | tuple[int, int]) -> TTFont:
    """Return the font with our characters and weights (one, or a range), under the given family name."""
    font = TTFont(source, recalcTimestamp=False)
    options = Options(layout_features=FEATURES, flavor="woff2", hinting=False, name_IDs=[0, 1, 2, 4, 6, 13, 14])
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=LETTERS + PUNCTUATION + SIGNS)
    subsetter.subset(font)
    instancer.instantiateVariableFont(font, {"wght": weights}, inplace=True)
    _only_figures_are_tabular(font)
    for record in font["name"].names:
        if record.nameID in (1, 4):
            record.string = family
        elif record.nameID == 6:
            record.string = family.replace(" ", "")
    font.flavor = "woff2"
    return font


def _only_figures_are_tabular(font: TTFont) -> None:
    """Take hyphens, brackets and the like out of `tnum`: words beside numbers would look torn apart."""
    table = font["GSUB"].table if "GSUB" in font else None
    features = table.FeatureList.FeatureRecord if table else []
    for number in {n for f in features if f.FeatureTag == "tnum" for n in f.Feature.LookupListIndex}:
        for subtable in table.LookupList.Lookup[number].SubTable:
            mapping = getattr(subtable, "ExtSubTable", subtable).mapping
            for glyph in [glyph for glyph in mapping if glyph not in TABULAR]:
                del mapping[glyph]


def main() -> None:
    """Write the four files beside this script and print their sizes."""
    for name, source in FACES.items():
        font = subset(PACKAGES / source, name.replace("-", " ").title(), WEIGHTS.get(name, USUAL_WEIGHTS))
        target = HERE / f"{name}.woff2"
        font.save(target)
        print(f"{target.name}  {target.stat().st_size / 1000:.1f} KB")


if __name__ == "__main__":
    main()
