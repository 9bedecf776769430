"""From documents to tokens: nothing is lost, nothing leaks, nothing half-written is left."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from lengen.language import prepare as prepare_module
from lengen.language.c4 import c4_documents
from lengen.language.documents import Document, csv_column, html_page, latin1_text, sword_blocks, wikitext, zipped
from lengen.language.files import find_files, read_files
from lengen.language.packed import PackedCorpus
from lengen.language.prepare import OWN_SPLITS, Splitter, cleaned, prepare
from lengen.language.tokenizer import END_OF_TEXT, load_tokenizer

from .conftest import EXCERPT, shakespeare_documents


def texts_of(corpus: PackedCorpus, split: str) -> list[str]:
    tokens, tokenizer = corpus.split(split), corpus.tokenizer()
    return [tokenizer.decode(tokens.document(i).tolist()) for i in range(tokens.stamp.documents)]


def test_every_document_comes_back_and_is_in_one_split(corpus):
    found = {split: texts_of(corpus, split) for split in ("train", "valid", "test")}
    assert all(found.values())
    every = sorted(text for texts in found.values() for text in texts)
    assert every == sorted(document.text for document in cleaned(shakespeare_documents()))
    assert not set(found["train"]) & (set(found["valid"]) | set(found["test"]))


def test_documents_are_ended_where_they_end(corpus):
    tokens = corpus.split("train")
    ends = np.flatnonzero(np.asarray(tokens.tokens) == corpus.stamp.end_of_text)
    assert np.array_equal(ends, tokens.starts[1:] - 1)


def test_copies_stay_together(tmp_path):
    documents = [Document(f"text {i % 30}: to be or not to be") for i in range(90)]
    packed = prepare("copies", lambda: documents, tmp_path / "c", vocab_size=300, licences={})
    held_out = set(texts_of(packed, "test")) | set(texts_of(packed, "valid"))
    assert held_out
    assert not held_out & set(texts_of(packed, "train"))


def test_splitting_by_place_in_the_file_would_leak():
    documents = [Document(f"text {i % 30}") for i in range(90)]
    train, test = documents[:60], documents[60:]
    assert {d.text for d in train} & {d.text for d in test}  # what the test above excludes
    split_of = Splitter.of(documents)
    assert {split_of(d) for d in documents if d.text == "text 3"} == {split_of(Document("text 3"))}


def test_a_corpus_keeps_its_own_splits(tmp_path):
    documents = [Document("one one", "train"), Document("two two", "valid"), Document("three three", "test")]
    packed = prepare("own", lambda: documents, tmp_path / "c", vocab_size=300, licences={})
    assert [texts_of(packed, split) for split in ("train", "valid", "test")] == [
        ["one one"],
        ["two two"],
        ["three three"],
    ]


def test_the_end_of_text_written_in_a_text_is_only_characters(tmp_path):
    documents = [Document(f"a {END_OF_TEXT} b {i}", "train") for i in range(3)]
    packed = prepare("odd", lambda: documents, tmp_path / "c", vocab_size=300, licences={})
    assert (np.asarray(packed.split("train").tokens) == packed.stamp.end_of_text).sum() == 3
    assert texts_of(packed, "train")[0] == documents[0].text


def test_any_text_has_tokens(corpus):
    tokenizer = corpus.tokenizer()
    text = "日本語 – naïve\t\u200b😀\n"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_an_existing_tokenizer_is_used(corpus, tmp_path):
    tokenizer = load_tokenizer(str(corpus.folder / "tokenizer.json"), tmp_path)
    again = prepare("again", shakespeare_documents, tmp_path / "c", tokenizer=tokenizer, licences={})
    assert again.stamp.digest == corpus.stamp.digest
    other = prepare("other", shakespeare_documents, tmp_path / "d", vocab_size=401, licences={})
    assert other.stamp.digest != corpus.stamp.digest


def test_a_hugging_face_folder_is_a_tokenizer(corpus, tmp_path):
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(tokenizer_object=corpus.tokenizer(), eos_token=END_OF_TEXT).save_pretrained(tmp_path / "hf")
    loaded = load_tokenizer(str(tmp_path / "hf"), tmp_path)
    assert loaded.encode("to be").ids == corpus.tokenizer().encode("to be").ids


@pytest.mark.parametrize(
    ("given", "message"),
    [("nowhere", "does not exist"), ("empty.json", "is no tokenizer.json"), ("a.gguf", "cannot load")],
)
def test_bad_tokenizers_are_one_sentence(given, message, tmp_path):
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=message):
        load_tokenizer(str(tmp_path / given), tmp_path)


def test_a_folder_without_a_tokenizer_has_none(tmp_path):
    """transformers makes up an empty one, to which every text is nothing."""
    from transformers import AutoTokenizer, GPT2Config

    GPT2Config(n_layer=1).save_pretrained(tmp_path)
    made_up = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True).backend_tokenizer
    assert made_up.encode("to be", add_special_tokens=False).ids == []
    with pytest.raises(ValueError, match=r"holds no tokenizer; add its tokenizer.json"):
        load_tokenizer(str(tmp_path), tmp_path)


def test_special_tokens_in_a_text_are_only_characters_when_it_is_read_again(corpus, tmp_path):
    text = f"to {END_OF_TEXT} be"
    plain = load_tokenizer(str(corpus.folder / "tokenizer.json"), tmp_path)
    assert corpus.stamp.end_of_text not in plain.encode(text).ids
    assert corpus.stamp.end_of_text in Tokenizer.from_str(plain.to_str()).encode(text).ids  # as the library reads it


def test_text_json_and_parquet_are_read_alike(tmp_path):
    import pyarrow
    import pyarrow.parquet

    texts = ["To be", "or not", "to be"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    (tmp_path / "all.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    (tmp_path / "all.jsonl.gz").write_bytes(gzip.compress((tmp_path / "all.jsonl").read_bytes()))
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "all.parquet")
    for pattern in ("*.txt", "*.jsonl", "*.jsonl.gz", "*.parquet"):
        assert [document.text for document in read_files(find_files([str(tmp_path / pattern)]))] == texts
    assert len(find_files([str(tmp_path)])) == 6


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "naïve".encode("latin-1"), "is not UTF-8"),
        ("a.jsonl", b'{"text": "a"}\n{"text"', "line 2 of .* is no JSON"),
        ("a.jsonl", b'{"body": "a"}', "--text-field"),
        ("a.jsonl.gz", gzip.compress(b'{"text": "a"}', mtime=0)[:-9], "truncated or damaged"),
        ("a.jsonl", '{"text": "naïve"}'.encode("latin-1"), "line 1 of .*a.jsonl is not UTF-8"),
        ("a.parquet", b"PAR1", "no whole parquet file"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\\ud800"}', "line 2 of .*a.jsonl has half a character"),
    ],
    ids=["other encoding", "cut line", "other field", "cut archive", "other encoding of a line", "cut table", "half"],
)
def test_bad_files_are_one_sentence(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(read_files([path]))


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "a.jsonl").write_bytes('\ufeff{"text": "a"}\n{"text": "b"}'.encode())
    assert [document.text for document in read_files([tmp_path / "a.jsonl"])] == ["a", "b"]


def test_a_column_of_numbers_is_no_text(tmp_path):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"text": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"'text' of .*a.parquet holds no text but 1; name another with --text-field"):
        list(read_files([tmp_path / "a.parquet"]))


def test_a_line_of_json_ends_at_its_line_feed_alone(tmp_path):
    text = "one\u2028two\u0085three"
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}, ensure_ascii=False) + "\n\n", encoding="utf-8")
    assert [document.text for document in read_files([tmp_path / "a.jsonl"])] == [text]


def test_a_file_may_be_named_like_a_pattern(tmp_path):
    (tmp_path / "a[1].txt").write_text("to be")
    (tmp_path / "a1.txt").write_text("or not")
    assert find_files([str(tmp_path / "a[1].txt")]) == [tmp_path / "a[1].txt"]
    assert find_files([str(tmp_path / "a[12].txt")]) == [tmp_path / "a1.txt"]


def test_nothing_to_read_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="names no text"):
        find_files([str(tmp_path / "*.txt")])
    with pytest.raises(ValueError, match="holds no text to train on"):
        prepare("empty", lambda: [Document(" \n")], tmp_path / "c", vocab_size=300, licences={})
    assert list(tmp_path.iterdir()) == []  # no folder, no leftovers


def test_an_interrupted_preparation_leaves_nothing(tmp_path):
    calls = iter(range(3))

    def dying():
        yield Document("to be or not to be")
        if next(calls) == 2:
            raise MemoryError

    with pytest.raises(MemoryError):
        prepare("dying", dying, tmp_path / "c", vocab_size=300, licences={})
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_is_never_overwritten_by_accident(corpus):
    with pytest.raises(ValueError, match="exists already"):
        prepare("again", shakespeare_documents, corpus.folder, licences={})


def test_only_a_corpus_is_replaced(tmp_path):
    sources, out = tmp_path / "sources", tmp_path / "corpus"
    sources.mkdir()
    (sources / "mine.txt").write_text("years of work")
    for place in (sources, sources / "mine.txt"):
        with pytest.raises(ValueError, match="is no prepared corpus, so --overwrite leaves it alone"):
            prepare("again", shakespeare_documents, place, vocab_size=300, licences={}, overwrite=True)
    assert (sources / "mine.txt").read_text() == "years of work"
    prepare("first", shakespeare_documents, out, vocab_size=300, licences={})
    assert (
        prepare("second", shakespeare_documents, out, vocab_size=310, licences={}, overwrite=True).stamp.name
        == "second"
    )
    (out / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds more than a corpus \(notes.txt\)"):
        prepare("third", shakespeare_documents, out, vocab_size=300, licences={}, overwrite=True)
    assert PackedCorpus.open(out).stamp.name == "second"


@pytest.mark.parametrize(
    ("module", "name", "number"), [("shutil", "rmtree", 1), ("os", "replace", 1), ("os", "replace", 2)]
)
def test_stopped_while_it_replaces_a_corpus_one_of_the_two_is_left(module, name, number, tmp_path, monkeypatch):
    """Ctrl-C as the old one is deleted, moved away, or followed by the new one."""
    out, whole = tmp_path / "corpus", getattr(prepare_module, module)
    prepare("first", shakespeare_documents, out, vocab_size=300, licences={})
    real, calls = getattr(whole, name), iter(range(1, 100))

    def interrupted(*args, **settings):
        if next(calls) == number:
            raise KeyboardInterrupt
        return real(*args, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(whole, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare("second", shakespeare_documents, out, vocab_size=310, licences={}, overwrite=True)
    left = PackedCorpus.open(out)
    assert left.stamp.name == ("second" if name == "rmtree" else "first")
    assert texts_of(left, "test")
    again = prepare("third", shakespeare_documents, out, vocab_size=310, licences={}, overwrite=True)
    assert again.stamp.name == "third"


def test_documents_with_their_own_splits_are_read_once(corpus, tmp_path):
    """Where they are streamed (C4), another reading is another download."""
    readings = []

    def documents():
        readings.append(1)
        return [Document("one one", "train"), Document("two two", "test")]

    prepare("own", documents, tmp_path / "c", tokenizer=corpus.tokenizer(), split_of=OWN_SPLITS, licences={})
    assert len(readings) == 1


def test_a_tokenizer_that_pads_packs_no_padding(corpus, tmp_path):
    plain, padding = corpus.tokenizer(), corpus.tokenizer()
    padding.enable_padding(pad_id=1, pad_token="!", length=5000)
    padded = prepare("padded", shakespeare_documents, tmp_path / "c", tokenizer=padding, licences={})
    again = prepare("plain", shakespeare_documents, tmp_path / "d", tokenizer=plain, licences={})
    assert padded.splits == again.splits


def test_ids_with_gaps_count_by_the_largest(tmp_path):
    words = {END_OF_TEXT: 0, "to": 7, "be": 70_000}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=END_OF_TEXT))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    packed = prepare("gaps", lambda: [Document("to be")], tmp_path / "c", tokenizer=tokenizer, licences={})
    assert packed.stamp.vocab_size == 70_001
    assert packed.split("train").tokens.tolist() == [7, 70_000, 0]


def test_code_in_a_tokenizer_s_folder_is_never_run_nor_asked_about(corpus, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text('{"model_type": "own"}')
    settings = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / "own.py").write_text("raise SystemExit('code of the folder was run')")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked at the keyboard"))
    with pytest.raises(ValueError, match=r"transformers cannot load .*; give a whole copy of it, or another"):
        load_tokenizer(str(tmp_path), tmp_path)


@pytest.mark.parametrize("name", ["train.tokens", "train.starts"])
def test_a_truncated_token_file_is_noticed(name, tmp_path):
    packed = prepare("cut", shakespeare_documents, tmp_path / "c", vocab_size=300, licences={})
    path = packed.folder / name
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ValueError, match=r"missing or truncated; prepare the corpus again"):
        packed.split("train")


@pytest.mark.parametrize("name", ["train.tokens", "train.starts"])
def test_a_changed_token_file_is_noticed(name, tmp_path, monkeypatch):
    packed = prepare("changed", shakespeare_documents, tmp_path / "c", vocab_size=300, licences={})
    path = packed.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"was changed; prepare the corpus again"):
        packed.split("train")
    packed.split("valid")
    monkeypatch.setattr("lengen.language.packed.MAX_CHECKED_BYTES", 0)
    packed.split("train")  # what is too large to be read at every start


@pytest.mark.parametrize("missing", ["splits", "dtype", "tokenizer_sha256"])
def test_a_manifest_that_lacks_something_is_damaged(missing, tmp_path):
    packed = prepare("damaged", shakespeare_documents, tmp_path / "c", vocab_size=300, licences={})
    file = packed.folder / "corpus.json"
    manifest = json.loads(file.read_text())
    del manifest[missing]
    file.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=f"is damaged .'{missing}'.; prepare the corpus again"):
        PackedCorpus.open(packed.folder)


def test_damaged_manifests_are_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="is no prepared corpus"):
        PackedCorpus.open(tmp_path)
    (tmp_path / "corpus.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        PackedCorpus.open(tmp_path)


def c4_file(path: Path, texts: list[str]) -> str:
    """A file of C4's schema."""
    records = [{"text": text, "timestamp": "2019-04-25T12:57:54Z", "url": "http://example.com"} for text in texts]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    return str(path)


def test_c4_is_read_from_files_of_its_schema(tmp_path):
    texts = [f"document {i}" for i in range(10)]
    path = c4_file(tmp_path / "c4-train.00000-of-01024.json.gz", texts)
    assert [document.text for document in c4_documents(7, [Path(path)])] == texts[:7]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what `datasets` uses
def test_c4_is_streamed_by_datasets(tmp_path, monkeypatch):
    """The code that reads the hub, on local files of both splits."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    train, held_out = ([f"{name} {i}" for i in range(120)] for name in ("training", "validation"))
    files = {
        "train": c4_file(tmp_path / "c4-train.00000-of-01024.json.gz", train),
        "validation": c4_file(tmp_path / "c4-validation.00000-of-00008.json.gz", held_out),
    }
    documents = list(c4_documents(7, source={"path": "json", "data_files": files}))
    assert documents[:7] == [Document(text, "train") for text in train[:7]]
    assert documents[7:] == [Document(text, ("valid", "test")[i % 2]) for i, text in enumerate(held_out[:100])]
    with pytest.raises(ValueError, match=r"cannot stream json .*; check the network, or give local files"):
        list(c4_documents(7, source={"path": "json", "data_files": {"train": str(tmp_path / "none.json.gz")}}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b'{"url": "http://example.com"}', mtime=0), "line 1 of .*c4.json.gz has no text in 'text'"),
        (gzip.compress(b'{"text": "a"}', mtime=0)[:-9], "c4.json.gz is truncated or damaged"),
        (gzip.compress('{"text": "naïve"}'.encode("latin-1"), mtime=0), "line 1 of .*c4.json.gz is not UTF-8"),
    ],
)
def test_bad_files_of_c4_are_one_sentence(content, message, tmp_path):
    path = tmp_path / "c4.json.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(c4_documents(7, [path]))


def test_wikitext_articles_begin_with_their_titles():
    text = " \n = One = \n \n a \n = = Part = = \n \n b \n = Two = \n \n c \n"
    documents = list(wikitext("data/test.raw.gz", gzip.compress(text.encode())))
    assert [document.text.split()[1] for document in documents] == ["One", "Two"]
    assert {document.split for document in documents} == {"test"}
    assert "= = Part = =" in documents[0].text


def test_books_in_latin_1_and_tables_of_reviews_are_read():
    assert [document.text for document in latin1_text("a.txt", "naïve".encode("latin-1"))] == ["naïve"]
    table = b'id,review\n1,"Good, &amp; short<br />The end"\n2,\n3,"Two\nlines"\n'
    texts = ["Good, & short\nThe end", "", "Two\nlines"]
    read = csv_column("review")
    assert [document.text for document in read("a.csv", table)] == texts
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("b.csv", table)
    assert [document.text for document in zipped(read)("b.zip", packed.getvalue())] == texts


def test_pages_lose_what_is_no_prose():
    page = b"<html><head><title>T</title></head><body><p>One  <b>two</b></p><pre>code</pre><p>three</p></body></html>"
    assert next(html_page("a.html", page)).text == "One two\nthree"


def test_pages_lose_their_navigation():
    """Lists of links that stand on every page, divisions within them included; what follows them stays."""
    page = b"""<body><div class="sphinxsidebar wide"><div><a>All pages</a></div><ul><li>Next</li></ul></div>
      <div class="body"><h1>Title<a class="headerlink">#</a></h1><p class="topic">Text</p></div>
      <div class="clearer footer">Made by hand</div><p>End</p></body>"""
    assert next(html_page("a.html", page)).text == "Title\nText\nEnd"


def test_commentaries_are_zlib_blocks():
    import struct
    import zlib

    blocks = [zlib.compress(text) for text in (b"<i>First</i> &amp; last", b"Second")]
    index = struct.pack("<III", 0, len(blocks[0]), 23) + struct.pack("<III", len(blocks[0]), len(blocks[1]), 6)
    assert [document.text.strip() for document in sword_blocks(index, b"".join(blocks))] == ["First  & last", "Second"]
    with pytest.raises(ValueError, match="fetch it again"):
        list(sword_blocks(struct.pack("<III", 0, len(blocks[0]), 22), blocks[0]))


def test_the_excerpt_is_the_embedded_one():
    assert EXCERPT.read_text().startswith("First Citizen:")
