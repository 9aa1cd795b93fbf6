#!/usr/bin/env python3
"""Writes a BERT sentence-transformers folder (safetensors, mean pooling, normalised) as one ONNX file for ONNX Runtime.

  make_onnx.py MODEL_FOLDER OUT.onnx

Inputs: input_ids, attention_mask [batch, length] int64. Output: embedding [batch, hidden_size] f32, unit length.
Written with the runtime's own fused operators (Attention, SkipLayerNormalization, BiasGelu), which is what its
optimiser makes of an exported model: the peer is to run at its best. The caller checks the vectors before it times.
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from safetensors_file import read_safetensors

MICROSOFT = "com.microsoft"


class Graph:
    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        name = f"{op}_{len(self.nodes)}"
        names = [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=name, domain=domain, **attributes))
        return names[0]


def add_layer(graph, hidden, mask, weights, prefix, heads, epsilon):
    def get(name):
        return weights[prefix + name]

    def linear(name):  # stored [out, in]; MatMul wants [in, out]
        return graph.weight(prefix + name + ".weight", get(name + ".weight").T)

    def norm(x, residual, bias, name):
        gain = graph.weight(prefix + name + ".gain", get(name + ".weight"))
        beta = graph.weight(prefix + name + ".beta", get(name + ".bias"))
        return graph.node("SkipLayerNormalization", [x, residual, gain, beta, bias], domain=MICROSOFT, epsilon=epsilon)

    names = ("attention.self.query", "attention.self.key", "attention.self.value")
    qkv = graph.weight(prefix + "qkv.weight", np.concatenate([get(n + ".weight").T for n in names], axis=1))
    qkv_bias = graph.weight(prefix + "qkv.bias", np.concatenate([get(n + ".bias") for n in names]))
    context = graph.node("Attention", [hidden, qkv, qkv_bias, mask], domain=MICROSOFT, num_heads=heads)
    projected = graph.node("MatMul", [context, linear("attention.output.dense")])
    bias = graph.weight(prefix + "attention.bias", get("attention.output.dense.bias"))
    hidden = norm(projected, hidden, bias, "attention.output.LayerNorm")
    inner = graph.node("MatMul", [hidden, linear("intermediate.dense")])
    inner_bias = graph.weight(prefix + "intermediate.bias", get("intermediate.dense.bias"))
    inner = graph.node("BiasGelu", [inner, inner_bias], domain=MICROSOFT)
    outer = graph.node("MatMul", [inner, linear("output.dense")])
    bias = graph.weight(prefix + "output.bias", get("output.dense.bias"))
    return norm(outer, hidden, bias, "output.LayerNorm")


def make_model(folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "bert" and config["hidden_act"] == "gelu", "only BERT with exact GELU"
    weights = {name.removeprefix("bert."): array
               for name, array in read_safetensors(folder / "model.safetensors").items()}
    epsilon = config["layer_norm_eps"]
    graph = Graph()

    ids32 = graph.node("Cast", ["input_ids"], to=TensorProto.INT32)
    mask32 = graph.node("Cast", ["attention_mask"], to=TensorProto.INT32)
    # Every sequence has token type 0: its row is added to the position table once, here.
    tables = [graph.weight("words", weights["embeddings.word_embeddings.weight"]),
              graph.weight("positions", weights["embeddings.position_embeddings.weight"]
                           + weights["embeddings.token_type_embeddings.weight"][0])]
    gain = graph.weight("embeddings.gain", weights["embeddings.LayerNorm.weight"])
    beta = graph.weight("embeddings.beta", weights["embeddings.LayerNorm.bias"])
    hidden = graph.node("EmbedLayerNormalization", [ids32, "", *tables, "", gain, beta], outputs=2, domain=MICROSOFT,
                        epsilon=epsilon)
    for layer in range(config["num_hidden_layers"]):
        hidden = add_layer(graph, hidden, mask32, weights, f"encoder.layer.{layer}.", config["num_attention_heads"],
                           epsilon)

    weights_of_tokens = graph.node("Unsqueeze", [graph.node("Cast", ["attention_mask"], to=TensorProto.FLOAT),
                                                 graph.weight("axis1", np.array([1], np.int64))])
    total = graph.node("MatMul", [weights_of_tokens, hidden])  # [batch, 1, hidden_size]
    total = graph.node("Squeeze", [total, "axis1"])
    # The mean differs from the sum by a factor, which normalising removes.
    graph.nodes.append(helper.make_node("LpNormalization", [total], ["embedding"], axis=1, p=2))

    size = config["hidden_size"]
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"])
              for n in ("input_ids", "attention_mask")]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", size])]
    model = helper.make_model(helper.make_graph(graph.nodes, "bert", inputs, outputs, graph.weights),
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)])
    model.ir_version = 8
    return model


def main(arguments):
    if len(arguments) != 2:
        raise SystemExit(__doc__)
    onnx.save(make_model(Path(arguments[0])), arguments[1])


if __name__ == "__main__":
    main(sys.argv[1:])
