"""Archives, playlists, documents and films are refused by what they are, and the refusal says what that is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.imaging.foreign import name_of
from shared.imaging.probe import probe
from shared.imaging.sniff import sniff
from shared.rejections import UnsupportedMediaTypeError
from tests.unit.imaging.samples import CASES, LIMITS, case, colours, png

PICTURE = png(colours(), 8, 2)


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("picture.png", PICTURE)
    return buffer.getvalue()


def tarred(form: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        entry = tarfile.TarInfo("picture.png")
        entry.size = len(PICTURE)
        archive.addfile(entry, io.BytesIO(PICTURE))
    return buffer.getvalue()


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><image href="http://10.0.0.1/"/></svg>'
FOREIGN = {
    "zip": (zipped(), "a ZIP archive"),
    "empty zip": (b"PK\5\6" + bytes(18), "a ZIP archive"),
    "gzip": (gzip.compress(PICTURE), "gzip data"),
    "svgz": (gzip.compress(SVG), "gzip data"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4" + bytes(24), "a 7z archive"),
    "rar 4": (b"Rar!\x1a\7\0" + bytes(20), "a RAR archive"),
    "rar 5": (b"Rar!\x1a\7\1\0" + bytes(20), "a RAR archive"),
    "tar posix": (tarred(tarfile.PAX_FORMAT), "a tar archive"),
    "tar gnu": (tarred(tarfile.GNU_FORMAT), "a tar archive"),
    "xz": (lzma.compress(PICTURE), "xz data"),
    "bzip2": (bz2.compress(PICTURE), "bzip2 data"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00a\x9b", "zstd data"),
    "m3u8": (b"#EXTM3U\n#EXTINF:1\nhttp://169.254.169.254/\n", "a playlist (M3U8)"),
    "m3u8 with a mark": (b"\xef\xbb\xbf \r\n#EXTM3U\n", "a playlist (M3U8)"),
    "ffconcat": (b"ffconcat version 1.0\nfile '/etc/passwd'\n", "a playlist (ffconcat)"),
    "pls": (b"[playlist]\nFile1=http://10.0.0.1/\n", "a playlist (PLS)"),
    "svg": (SVG, "an SVG document"),
    "svg in xml": (b'<?xml version="1.0"?>\n<!-- x -->\n' + SVG, "an SVG document"),
    "svg in utf-16": (('<?xml version="1.0"?>' + SVG.decode()).encode("utf-16"), "an SVG document"),
    "xml": (b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>', "an XML document"),
    "pdf": (b"%PDF-1.7\n", "a PDF document"),
    "postscript": (b"%!PS-Adobe-3.0 EPSF-3.0\n", "a PostScript document"),
    "eps with preview": (b"\xc5\xd0\xd3\xc6" + bytes(26), "a PostScript document"),
    "html": (b"\n <!DOCTYPE html><html></html>", "an HTML page"),
    "mp4": (b"\0\0\0\x18ftypisom\0\0\2\0isommp42", "a film (MP4)"),
    "webm": (b"\x1aE\xdf\xa3\x9f", "a film (Matroska)"),
    "avi": (b"RIFF\0\0\0\0AVI LIST", "a film or sound (RIFF)"),
    "json": (b'{"source": "a.jpg"}', "a JSON document"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_img_10_what_is_no_picture_is_named(name: str) -> None:
    data, meant = FOREIGN[name]
    with pytest.raises(UnsupportedMediaTypeError) as caught:
        probe(data, LIMITS)
    assert (caught.value.status, caught.value.code) == (415, "unsupported_media_type")
    assert caught.value.detail == f"This is {meant}, no picture that we read."
    assert caught.value.context == {"found": meant}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("html_named.jpg", "an HTML page"),
        ("eps_named.jpg", "a PostScript document"),
        ("svg_named.png", "an SVG document"),
        ("remote_ref.svg", "an SVG document"),
    ],
)
def test_img_10_case_files_are_named(name: str, meant: str) -> None:
    assert name_of(case(name)) == meant


@pytest.mark.parametrize("data", [b"x", b"some text", bytes(600), b"\xff\xfe", b"BMW is a car", b"RIF"])
def test_what_nobody_knows_is_refused_without_a_name(data: bytes) -> None:
    with pytest.raises(UnsupportedMediaTypeError) as caught:
        sniff(data)
    assert caught.value.context == {}


def test_pictures_are_not_taken_for_anything_else() -> None:
    for path in CASES.glob("*.*"):
        if path.suffix in (".jpg", ".png", ".gif", ".webp") and not path.name.startswith(
            ("html", "eps", "svg", "zero")
        ):
            assert sniff(path.read_bytes()).content_type.startswith("image/")


@given(st.binary(max_size=2000))
def test_any_bytes_have_an_answer(data: bytes) -> None:
    assert isinstance(name_of(data), str)
