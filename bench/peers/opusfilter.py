#!/usr/bin/env python3
"""`starling clean` beside OpusFilter's filters on the same pairs, one process and one thread each, in turn: pairs a second, and how many
times as fast. OpusFilter has its filters for lengths, ratios, long words, markup, letters, scripts, digits and repetitions, and its removal
of copies; its filters for similarity and language need libraries that Debian does not have, so it runs without them. Starling runs with
all of its rules, and without that for languages.
Usage: bench/peers/opusfilter.py OPUSFILTER_DIRECTORY STARLING TEXT.tsv SOURCE_LANGUAGE TARGET_LANGUAGE [PAIRS, default 60000]
[RUNS, default 3]
Needs python3-regex, python3-ruamel.yaml, python3-pandas, python3-tqdm, python3-xxhash, python3-bs4 and a checkout of OpusFilter."""
import importlib.util, os, subprocess, sys, tempfile, time, unittest.mock, warnings

warnings.simplefilter("ignore")

SCRIPTS = {"ru": "Cyrillic", "uk": "Cyrillic", "bg": "Cyrillic", "el": "Greek", "ar": "Arabic", "zh": "Han", "ja": "Han", "ko": "Hangul"}
UNUSED = ["iso639", "heliport", "fasttext", "lingua", "pycld2", "py3langid", "opustools", "mosestokenizer", "sentence_splitter", "jieba",
          "MeCab", "rapidfuzz", "eflomal", "laserembeddings", "varikn", "sklearn", "matplotlib", "pigz", "opus_fast_mosestokenizer"]


def opusfilter(directory, languages):
    sys.path.insert(0, directory)
    for name in UNUSED:
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = unittest.mock.MagicMock()
    from opusfilter import filters, segment_hash
    scripts = [SCRIPTS.get(language, "Latin") for language in languages]
    parts = [filters.LengthFilter(unit="word", max_length=250), filters.LengthRatioFilter(unit="char"), filters.LongWordFilter(),
             filters.HtmlTagFilter(), filters.AlphabetRatioFilter(threshold=0.3, exclude_whitespace=True),
             filters.CharacterScoreFilter(scripts=scripts, thresholds=[0.5, 0.5]), filters.NonZeroNumeralsFilter(),
             filters.RepetitionFilter()]
    hasher = segment_hash.SegmentHasher(compare="all")

    def clean(pairs):
        kept, seen = pairs, set()
        times = {}
        for part in parts:
            begin = time.process_time()
            kept = list(part.filter(kept))
            times[type(part).__name__] = time.process_time() - begin
        begin = time.process_time()
        kept = [pair for pair in kept if (key := hasher.apply(pair)) not in seen and not seen.add(key)]
        times["copies"] = time.process_time() - begin
        return len(kept), times
    return clean


def main():
    directory, starling, text, source, target = sys.argv[1:6]
    count, runs = map(int, (sys.argv[6:] + ["60000", "3"][len(sys.argv) - 6 :])[:2])
    pairs = [line.rstrip("\n").split("\t") for line, _ in zip(open(text, encoding="utf8"), range(count))]
    other = opusfilter(directory, (source, target))
    ways = {"all rules": [], "without languages": ["--clean.language", "false"]}
    ratios = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as work:
        part = os.path.join(work, "part.tsv")
        with open(part, "w", encoding="utf8") as file:
            file.writelines("\t".join(pair) + "\n" for pair in pairs)
        for run in range(runs):
            kept, times = other(pairs)
            theirs = sum(times.values())
            line = f"OpusFilter {theirs:.2f} CPU s ({len(pairs) / theirs:.0f} pairs/s)"
            for way, options in ways.items():
                before = os.times()
                subprocess.run([starling, "clean", "--data.tsv", part, "--data.source-language", source, "--data.target-language", target,
                                "--train.threads", "1", "-o", os.path.join(work, way + str(run)), *options], check=True,
                               stdout=subprocess.DEVNULL)
                after = os.times()
                ours = after.children_user + after.children_system - before.children_user - before.children_system
                ratios[way].append(theirs / ours)
                line += f"; Starling, {way}, {ours:.2f} CPU s ({len(pairs) / ours:.0f} pairs/s), {theirs / ours:.1f} times as fast"
            print(line)
    print("CPU microseconds a pair of OpusFilter's: " + ", ".join(f"{name} {1e6 * t / len(pairs):.1f}" for name, t in times.items()))
    print("medians: " + ", ".join(f"{way} {sorted(all_of)[runs // 2]:.1f} times" for way, all_of in ratios.items()))


if __name__ == "__main__":
    main()
