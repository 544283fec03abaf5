#!/usr/bin/env python3
"""Compares checkpoints byte by byte, tensor by tensor, with the reader that shares no code with the product.

    compare_checkpoints.py EXPECTED DIR...      exit 0: all equal; 1: the first difference of each is named; 3: unreadable
"""
import sys

import safetensors_py as st


def difference(expected, found):
    for name in sorted(expected.places.keys() | found.places.keys()):
        if name not in found.places or name not in expected.places:
            return f"tensor {name} is {'missing' if name not in found.places else 'too many'}"
        if expected.kind(name) != found.kind(name):
            return f"tensor {name} has another dtype or shape"
        at = 0
        for want, have in zip(expected.pieces(name), found.pieces(name), strict=True):
            if want != have:
                return f"tensor {name} differs from byte {at + next(i for i, (a, b) in enumerate(zip(want, have)) if a != b)} on"
            at += len(want)
    return None


def main(expected, *directories):
    worst = 0
    with st.MappedCheckpoint(expected) as want:
        total = sum(end - begin for _, _, _, begin, end in want.places.values())
        for directory in directories:
            with st.MappedCheckpoint(directory) as have:
                wrong = difference(want, have)
            print(f"{directory}: {wrong or f'equal, {len(want.places)} tensors, {total} bytes'}")
            worst = max(worst, 1 if wrong else 0)
    return worst


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except (OSError, st.BadFile, ValueError) as error:
        print(f"error: cannot compare: {error}", file=sys.stderr)
        sys.exit(3)
