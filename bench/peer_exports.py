#!/usr/bin/env python3
"""Writes a sentence-transformers folder in the format that a peer reads, once.

  peer_exports.py FORMAT MODEL_FOLDER OUT_FOLDER     FORMAT: onnx, openvino, ctranslate2, infinity, gguf

What is in OUT_FOLDER from before stays when it was made from the same weights. Graphs take input_ids and
attention_mask [batch, length] int64 and give `embedding` [batch, width], unit length. BERT becomes ONNX Runtime's own
fused operators (make_onnx.py); other families are exported from the reference library, pooling included, and then
fused by the peer's own optimiser. CTranslate2's converter knows some families only and writes the encoder alone. Infinity
wants a folder of Hugging Face's with model.onnx in it, as optimum writes it; gguf is llama.cpp's (make_gguf.py).
Ends with exit code 1 and the reason as the last line of standard error.
"""
import json
import shutil
import sys
from pathlib import Path


def weights_stamp(model):
    """Changes with the weights, without reading them."""
    return [[file.name, file.stat().st_size, int(file.stat().st_mtime)] for file in sorted(Path(model).glob("*.safetensors"))]


def reference(model):
    """The folder as one torch module over ids and mask, float32."""
    import torch
    from sentence_transformers import SentenceTransformer

    class Embedding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = SentenceTransformer(str(model), device="cpu", model_kwargs={"dtype": torch.float32})

        def forward(self, input_ids, attention_mask):
            return self.model({"input_ids": input_ids, "attention_mask": attention_mask})["sentence_embedding"]

    ids = torch.randint(5, 100, (2, 12))
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    return Embedding().eval(), (ids, mask)


def write_onnx(model, folder):
    import onnx
    if json.loads((Path(model) / "config.json").read_text())["model_type"] == "bert":
        from make_onnx import make_model
        onnx.save(make_model(Path(model)), folder / "model.onnx")
        return
    import torch
    module, example = reference(model)
    with torch.no_grad():
        torch.onnx.export(module, example, str(folder / "model.onnx"), dynamo=False, opset_version=17,
                          input_names=["input_ids", "attention_mask"], output_names=["embedding"],
                          dynamic_axes={name: {0: "batch", 1: "length"} for name in ("input_ids", "attention_mask")})


def write_openvino(model, folder):
    import openvino
    import torch
    module, (ids, mask) = reference(model)
    with torch.no_grad():
        converted = openvino.convert_model(module, example_input={"input_ids": ids, "attention_mask": mask},
                                           input=[("input_ids", [-1, -1], openvino.Type.i64),
                                                  ("attention_mask", [-1, -1], openvino.Type.i64)])
    openvino.save_model(converted, folder / "model.xml", compress_to_fp16=False)


def write_ctranslate2(model, folder):
    import transformers
    from ctranslate2.converters import TransformersConverter
    # The converter asks for it; transformers 5 has no other kind and no longer says so.
    if not hasattr(transformers.PretrainedConfig, "position_embedding_type"):
        transformers.PretrainedConfig.position_embedding_type = "absolute"
    TransformersConverter(str(model)).convert(str(folder), quantization="float32", force=True)


def write_infinity(model, folder):
    from optimum.onnxruntime import ORTModelForFeatureExtraction
    from transformers import AutoTokenizer
    ORTModelForFeatureExtraction.from_pretrained(str(model), export=True).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(model)).save_pretrained(folder)


def write_llama(model, folder):
    from make_gguf import write_gguf
    write_gguf(model, folder / "model.gguf")


WRITERS = {"onnx": write_onnx, "openvino": write_openvino, "ctranslate2": write_ctranslate2, "infinity": write_infinity,
           "gguf": write_llama}


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in WRITERS:
        raise SystemExit(__doc__)
    kind, model, folder = arguments[0], arguments[1], Path(arguments[2])
    stamp = folder / "made_from.json"
    if stamp.exists() and json.loads(stamp.read_text()) == weights_stamp(model):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        WRITERS[kind](model, folder)
    except Exception as error:  # a library of others: whatever it raises, this peer is left out
        first_line = (str(error).strip().splitlines() or [""])[0]
        raise SystemExit(f"{type(error).__name__}: {first_line}") from error
    stamp.write_text(json.dumps(weights_stamp(model)))


if __name__ == "__main__":
    main(sys.argv[1:])
