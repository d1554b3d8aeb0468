import argparse


def places(arguments: argparse.Namespace) -> int:
    return 0
