"""The only package that imports lance: tables whose every effect is a version nobody sees until it is published."""
