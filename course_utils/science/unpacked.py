"""A quantized model file (GGUF), unpacked once into float32 numbers that every kernel maps into memory and shares.

The unpacked file is a safetensors file in the user's cache folder (or the folder that COURSE_CACHE names). It is
written beside its place and moved there in one step, and its header records what it was made from, the version of
this conversion, and the sha256 of its numbers: a damaged, half-written or outdated file is made anew.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import filelock
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from course_utils.places import cache_folder, replacing
from course_utils.science.positions import half_split_order
from course_utils.science.pretrained import ModelMissing, checked, package_folder

FORMAT = "1"  # of the conversion: files of another one are made anew
LOCK_SECONDS = 300
SETTINGS = {  # GGUF's names of a Llama's sizes, by ours
    "layers": "llama.block_count",
    "width": "llama.embedding_length",
    "heads": "llama.attention.head_count",
    "key_heads": "llama.attention.head_count_kv",
    "hidden": "llama.feed_forward_length",
    "window": "llama.context_length",
    "base": "llama.rope.freq_base",
    "epsilon": "llama.attention.layer_norm_rms_epsilon",
}


def unpacked(package: str, name: str, sha256: str) -> Path:
    """The unpacked form of the GGUF file `name` of a model package: made where it is missing or not sound.

    Raises ModelMissing where the package is absent or damaged, and where the cache folder has no room or refuses.
    """
    target = cache_folder() / f"{Path(name).stem}.safetensors"
    if is_sound(target, sha256):
        return target
    source = checked(package_folder(package) / name, sha256, package)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(target.with_suffix(".lock"), timeout=LOCK_SECONDS):
            if not is_sound(target, sha256):  # another kernel may have made it meanwhile
                _unpack(source, target, sha256)
    except (OSError, filelock.Timeout) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelMissing(
            f"the model {package} can't be unpacked into {target.parent} ({reason}): it takes 0.6 GB there; make room, "
            "or name another folder in COURSE_CACHE"
        ) from error
    return target


def is_sound(file: Path, sha256: str) -> bool:
    """Whether an unpacked file is whole, of this conversion, and made from the source with this sha256."""
    try:
        record = read_record(file)
        return (record["source"], record["format"], record["numbers"]) == (sha256, FORMAT, _sha256_of_numbers(file))
    except (OSError, SafetensorError, KeyError):
        return False


def read_record(file: Path) -> dict[str, str]:
    """What an unpacked file's header says: source, format, numbers (sha256), config and tokenizer (both JSON)."""
    if not file.is_file():
        raise FileNotFoundError(file)
    with safe_open(file, framework="np") as opened:
        return opened.metadata() or {}


def _sha256_of_numbers(file: Path) -> str:
    with file.open("rb") as opened:
        opened.seek(8 + int.from_bytes(opened.read(8), "little"))
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _unpack(source: Path, target: Path, sha256: str) -> None:
    """Unpack tensor by tensor: the largest, not the model, has to fit into memory."""
    gguf = _library("gguf")
    reader = gguf.GGUFReader(source)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    config = {ours: fields[theirs] for ours, theirs in SETTINGS.items()}
    record = {
        "source": sha256,
        "format": FORMAT,
        "numbers": "0" * 64,  # known only when all is written; then put here
        "config": json.dumps(config),
        "tokenizer": byte_pair_tokenizer(fields).to_str(),
    }
    with replacing(target) as part, part.open("wb") as file:
        _write(file, _tensors(gguf, reader, config), record, _shapes(reader))


def _shapes(reader: Any) -> dict[str, list[int]]:
    return {tensor.name: [int(n) for n in reversed(tensor.shape)] for tensor in reader.tensors}


def _tensors(gguf: Any, reader: Any, config: dict[str, Any]) -> Iterator[NDArray[np.float32]]:
    """Each tensor's numbers; rows of q and k back in half-split order (GGUF stores them interleaved)."""
    head_dim = config["width"] // config["heads"]
    order = half_split_order(head_dim)
    for tensor in reader.tensors:
        numbers = gguf.dequantize(tensor.data, tensor.tensor_type)
        if tensor.name.endswith(("attn_q.weight", "attn_k.weight")):
            heads = numbers.reshape(-1, head_dim, numbers.shape[-1])  # (heads, head_dim, width)
            numbers = heads[:, order].reshape(numbers.shape)
        yield np.ascontiguousarray(numbers, dtype="<f4")


def _write(
    file: BinaryIO, tensors: Iterator[NDArray[np.float32]], record: dict[str, str], shapes: dict[str, list[int]]
) -> None:
    """A safetensors file: the header's length (8 bytes), the header as JSON, the numbers."""
    size = sum(4 * int(np.prod(shape)) for shape in shapes.values())
    free = shutil.disk_usage(Path(file.name).parent).free
    if free < size + 2**20:
        raise OSError(f"{free / 1e9:.1f} GB are free")
    start = _write_header(file, record, shapes)
    digest = hashlib.sha256()
    for numbers in tensors:
        digest.update(numbers.data)
        file.write(numbers.data)
    file.seek(0)
    assert _write_header(file, record | {"numbers": digest.hexdigest()}, shapes) == start


def _write_header(file: BinaryIO, record: dict[str, str], shapes: dict[str, list[int]]) -> int:
    header: dict[str, Any] = {"__metadata__": record}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the numbers start at a multiple of 8
    return file.write(len(text).to_bytes(8, "little")) + file.write(text)


def byte_pair_tokenizer(fields: dict[str, Any]) -> Any:
    """The tokenizer (of the library tokenizers) that a GGUF file's fields describe: byte pairs, each digit alone.

    Raises ModelMissing for a kind other than SmolLM2's.
    """
    kind = fields["tokenizer.ggml.model"], fields["tokenizer.ggml.pre"]
    if kind != ("gpt2", "smollm"):
        raise ModelMissing(f"the model's tokenizer is of the kind {kind}: this course reads ('gpt2', 'smollm') only")
    library = _library("tokenizers")
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    made = library.Tokenizer(library.models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    digits = library.pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = library.pre_tokenizers.Sequence([digits, library.pre_tokenizers.ByteLevel(False)])
    made.decoder = library.decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, fields["tokenizer.ggml.token_type"], strict=True) if kind == 3]
    made.add_special_tokens(control)
    return made


@cache
def _library(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise ModelMissing(
            f"the library {name}, which reads the model, is not installed: run 'python -m course_utils setup' and "
            "restart the kernel"
        ) from error
