#!/usr/bin/env bash
# Fails when the repository speaks of one machine or leaves work open in a comment. The brackets keep the patterns from matching here.
set -uo pipefail
cd "$(dirname "$0")/.."
patterns='(^|[^[:alnum:]_.])/(wor[k]|roo[t]|hom[e])/|TOD[O]|FIXM[E]'
patterns+='|https?://[^ )]*(registr[y]|artifactor[y]|np[m]js|pyp[i]|pythonhoste[d]|de[b]\.debian)'
if git grep --no-index --exclude-standard -nIE "$patterns" -- .; then
  echo "check_words: the lines above name a machine's path, a package host or open work" >&2
  exit 1
fi
