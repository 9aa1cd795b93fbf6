#!/bin/sh
# The ctest fixture `test_data`: unpacks BOUQUET_DATA into the folder given, once per build folder.
# Usage: unpack_test_data.sh SOURCE_DIR TARGET_DIR. Data that is not packed, or absent, needs nothing.
set -e
data=${BOUQUET_DATA:-$1/../shared/data}
if [ -e "$data/unpack" ]; then
  sh "$data/unpack" "$2"
  echo "test data: $data, unpacked in $2"
elif [ -d "$data" ]; then
  echo "test data: $data"
else
  echo "test data: none ($data does not exist); tests that need it skip"
fi
