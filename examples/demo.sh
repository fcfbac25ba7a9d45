#!/bin/sh
# Shows toolgram at work: a model of 135 million parameters calls a tool, then answers in a schema. The raw text streams
# to stderr as the model writes it, the message follows on stdout. Usage: demo.sh [path of the toolgram command]
set -eu
toolgram=${1:-toolgram}
here=$(dirname "$0")

show() {
    printf '\n$ toolgram'
    for word in "$@"; do
        case $word in *' '*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$toolgram" "$@"
}

"$toolgram" pull smollm2 > /dev/null
show ask "What will the weather be in Paris over the next three days?" \
    --tools "$here/tools.py" --tool-choice required --stream
show ask "Maria is 31 years old. She is a nurse in Lisbon." --schema "$here/person.schema.json" --stream
