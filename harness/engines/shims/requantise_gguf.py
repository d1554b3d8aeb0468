"""GGUF file to another quantisation: `requantise_gguf.py FILE.gguf FOLDER TYPE`, TYPE as Q8_0.

What is quantised goes through float32; what is not stays as it is. Metadata are copied.
"""

import sys
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize, quantize

PLAIN = (GGMLQuantizationType.F32, GGMLQuantizationType.F16, GGMLQuantizationType.BF16)
WRITTEN_ANEW = ("GGUF.", gguf.Keys.General.ARCHITECTURE, gguf.Keys.General.FILE_TYPE)


def main(source: Path, target: Path, type_name: str) -> None:
    wanted, reader = GGMLQuantizationType[type_name], GGUFReader(source)
    writer = GGUFWriter(target, reader.fields[gguf.Keys.General.ARCHITECTURE].contents())
    for field in reader.fields.values():
        if not field.name.startswith(WRITTEN_ANEW):
            kind = field.types[0]
            inner = field.types[-1] if kind == GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{type_name}"])
    worst = 0.0
    for tensor in reader.tensors:
        if tensor.tensor_type in PLAIN:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        before = dequantize(tensor.data, tensor.tensor_type)
        quantised = quantize(before, wanted)
        after = dequantize(quantised, wanted)
        worst = max(worst, float(np.linalg.norm(after - before) / np.linalg.norm(before)))
        writer.add_tensor(tensor.name, quantised, raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"largest relative error of a tensor's values: {worst:.2%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) / f"{Path(sys.argv[1]).stem}.{sys.argv[3]}.gguf", sys.argv[3])
