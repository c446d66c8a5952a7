"""The baseline counts, and nothing else."""

from rnnapps.models.majority_tagger import MajorityTagger


def test_the_most_frequent_tag_of_each_word():
    sentences = [
        (["can", "the", "can", "run"], ["V", "D", "N", "V"]),
        (["the", "can", "rusts"], ["D", "N", "V"]),
        (["Ann", "the", "cook"], ["N", "D", "N"]),
    ]
    tagger = MajorityTagger(sentences)
    assert tagger.tag(["the", "can"]) == ["D", "N"]
    # Seen once: run V, rusts V, Ann N, cook N; where two are as frequent, the first by name.
    assert tagger.tag(["zebra"]) == ["N"] and tagger.tag([]) == []
    assert MajorityTagger([(["a", "a"], ["X", "X"])]).tag(["b"]) == ["X"]
