"""Translates the lines of standard input: translate.py MODEL < source > target"""
import sys

import starling

with starling.Translator(sys.argv[1]) as translator:
    for translation in translator.translate_iterable(sys.stdin):
        print(translation.text)
