#!/usr/bin/env python3
"""Real search over real text: what this machine's own package index says about each package.

  demo.py --bouquet build/release/bouquet --model build/models/all-MiniLM-L6-v2 [--seconds 40]

Starts the server, embeds as many descriptions as fit in the time through the HTTP API, keeps the vectors in memory and
answers a few searches. On a terminal it then goes on serving until Ctrl-C and answers what is typed.
"""
import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from embedding_client import EmbeddingClient
from package_index import read_descriptions
from progress import Progress

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from server_process import ServerError, ServerProcess, free_port  # noqa: E402

# Chosen by trying them on Debian's index: none shares its words with the best answer.
QUERIES = (
    "retouch holiday pictures",
    "play chess against the computer",
    "keep my passwords in a safe place",
    "look at the stars and planets tonight",
    "which program is eating all my disk space",
    "turn spoken words into written text",
)
TEXTS_PER_REQUEST = 64
CONCURRENT_REQUESTS = 4


def embed_for(client, texts, seconds):
    """Vectors [num_embedded, dimensions] of as many texts as fit in the time, in order."""
    batches = [texts[i:i + TEXTS_PER_REQUEST] for i in range(0, len(texts), TEXTS_PER_REQUEST)]
    progress = Progress(len(texts), seconds)
    blocks = []
    for block in client.embed_many(batches, CONCURRENT_REQUESTS, until=time.monotonic() + seconds):
        blocks.append(block)
        progress.advance(len(block))
    progress.finish()
    return np.concatenate(blocks)


def search(client, query, vectors, packages, best=3):
    started = time.perf_counter()
    vector = client.embed([query])[0]
    embedded = time.perf_counter()
    scores = vectors @ vector  # unit vectors: the cosine
    top = np.argpartition(-scores, best)[:best]
    top = top[np.argsort(-scores[top])]
    finished = time.perf_counter()
    print(f'\n  "{query}"   embedded in {(embedded - started) * 1e3:.1f} ms, '
          f"{len(vectors):,} vectors searched in {(finished - embedded) * 1e3:.1f} ms")
    for i in top:
        print(f"    {scores[i]:.3f}  {packages[i].name}: {packages[i].text}"[:118])


def serve_on(client, url, model_id, vectors, packages):
    """Answers what is typed until Ctrl-C; the server answers everybody else."""
    body = json.dumps({"model": model_id, "input": "hello"})
    print(f"\nServing at {url} until Ctrl-C. From another terminal:\n"
          f"  curl {url}/v1/embeddings -H 'Content-Type: application/json' -d '{body}'\n\nOr search here.")
    try:
        while True:
            try:
                query = input("\nsearch> ").strip()
            except EOFError:
                while True:
                    time.sleep(3600)
            if query:
                search(client, query, vectors, packages)
    except KeyboardInterrupt:
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bouquet", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--seconds", type=float, default=40, help="time for embedding")
    parser.add_argument("--port", type=int, default=0, help="0: 8080 where that is free, else any")
    arguments = parser.parse_args()

    packages = read_descriptions()
    print(f"demo: {len(packages):,} packages are described in this machine's package index")
    port = arguments.port or free_port(8080)
    with ServerProcess.serving(arguments.bouquet, arguments.model, port) as server:
        print(f"demo: {server.url} was ready after {server.ready_seconds:.2f} s")
        client = EmbeddingClient(port)
        model_id = client.model_id()
        vectors = embed_for(client, [f"{p.name}: {p.text}" for p in packages], arguments.seconds)
        print(f"demo: {len(vectors):,} descriptions are now vectors of {vectors.shape[1]} numbers, "
              f"{vectors.nbytes / 1e6:.0f} MB")
        for query in QUERIES:
            search(client, query, vectors, packages)
        if sys.stdin.isatty() and sys.stdout.isatty():
            serve_on(client, server.url, model_id, vectors, packages)
    print("\ndemo: the server has stopped")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ServerError as error:
        sys.exit(f"demo: {error}")
