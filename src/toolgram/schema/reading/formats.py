"""The formats of JSON Schema that are regular, as automata.

Nothing is admitted that the specification of a format forbids. A few formats admit less, since their limits do not add
up to a small automaton; `is_exact` says which, and a complement of such a one would be wrong:
- time, date-time: a leap second only in UTC (`Z`, `+00:00`, `-00:00`), and fractions of up to nine digits, since small
  models write zeros to the end of the context;
- duration: numbers of up to nine digits, for the same reason;
- hostname: at most seven labels, of at most 30 characters after the first (so that there are at most 253 characters);
  no label with hyphens in its third and fourth place, which RFC 5890 reserves (punycode is not regular);
- email: no quoted local part; one atom of up to 64 characters, two or three of up to 20, four or five of up to 12; such
  a host name as domain, no address in brackets;
- these with a `maxLength`: no more labels than fit into it, where four do;
- idn-email: the same, with fewer and shorter atoms, since 64 bytes are the limit, and a domain in ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from toolgram.caching import of_the_program
from toolgram.grammar.regular.automata import Automaton
from toolgram.grammar.regular.regex import Unsupported, pattern, pattern_as_written
from toolgram.work import remembered

_PARTS = {
    # RFC 3339; February 29 in leap years alone
    "month_day": "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8])",
    "leap_year": "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00",
    "date": "(?:[0-9]{4}-(?:$month_day)|(?:$leap_year)-02-29)",
    "hour_minute": "(?:[01][0-9]|2[0-3]):[0-5][0-9]",
    "fraction": "(?:\\.[0-9]{1,9})?",
    "time": "(?:$hour_minute:[0-5][0-9]$fraction(?:[Zz]|[+\\-]$hour_minute)|23:59:60$fraction(?:[Zz]|[+\\-]00:00))",
    # RFC 3339, appendix A: no unit is left out between two others, no fractions
    "count": "[0-9]{1,9}",
    "duration_time": "T(?:${count}H(?:${count}M(?:${count}S)?)?|${count}M(?:${count}S)?|${count}S)",
    "duration_date": "${count}Y(?:${count}M(?:${count}D)?)?|${count}M(?:${count}D)?|${count}D",
    # RFC 1123, RFC 5890
    "label": "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,2}[A-Za-z0-9]|$label_start[A-Za-z0-9\\-]{0,58}[A-Za-z0-9])?",
    "short_label": "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,2}[A-Za-z0-9]|$label_start[A-Za-z0-9\\-]{0,25}[A-Za-z0-9])?",
    "label_start": "[A-Za-z0-9\\-](?:[A-Za-z0-9][A-Za-z0-9\\-]|-[A-Za-z0-9])",
    "hostname": "$label(?:\\.$short_label){0,$more_labels}",
    # RFC 5321
    "atom_char": "A-Za-z0-9!#$$%&'*+/=?\\^_`{|}~\\-",
    "email": "(?:[$atom_char]{1,64}|[$atom_char]{1,20}(?:\\.[$atom_char]{1,20}){1,2}"
    "|[$atom_char]{1,12}(?:\\.[$atom_char]{1,12}){3,4})@$hostname",
    "idn_char": "$atom_char\\u0080-\\u{10FFFF}",
    "idn_email": "(?:[$idn_char]{1,16}|[$idn_char]{1,5}(?:\\.[$idn_char]{1,5}){1,2})@$hostname",
    # RFC 2673, RFC 4291
    "byte": "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])",
    "ipv4": "$byte(?:\\.$byte){3}",
    "h16": "[0-9A-Fa-f]{1,4}",
    "ls32": "(?:$h16:$h16|$ipv4)",
    "ipv6": "(?:(?:$h16:){6}$ls32|::(?:$h16:){5}$ls32|(?:$h16)?::(?:$h16:){4}$ls32"
    "|(?:(?:$h16:){0,1}$h16)?::(?:$h16:){3}$ls32|(?:(?:$h16:){0,2}$h16)?::(?:$h16:){2}$ls32"
    "|(?:(?:$h16:){0,3}$h16)?::$h16:$ls32|(?:(?:$h16:){0,4}$h16)?::$ls32"
    "|(?:(?:$h16:){0,5}$h16)?::$h16|(?:(?:$h16:){0,6}$h16)?::)",
    # RFC 3986, by the names of its own grammar
    "escaped": "%[0-9A-Fa-f]{2}",
    "reg": "A-Za-z0-9\\-._~!$$&'()*+,;=",
    "path_char": "(?:[$reg:@]|$escaped)",
    "ip_literal": "\\[(?:$ipv6|[vV][0-9A-Fa-f]+\\.[$reg:]+)\\]",
    "authority": "(?:(?:[$reg:]|$escaped)*@)?(?:(?:[$reg]|$escaped)*|$ip_literal)(?::[0-9]*)?",
    "rooted": "//$authority(?:/$path_char*)*|/(?:$path_char+(?:/$path_char*)*)?",
    "rest": "(?:\\?(?:$path_char|[/?])*)?(?:#(?:$path_char|[/?])*)?",
    "uri": "[A-Za-z][A-Za-z0-9+\\-.]*:(?:$rooted|$path_char+(?:/$path_char*)*)?$rest",
    "relative": "(?:$rooted|(?:[$reg@]|$escaped)+(?:/$path_char*)*)?$rest",
    # RFC 4122, RFC 6901, and the draft of relative JSON pointers
    "uuid": "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "pointer": "(?:/(?:[^/~]|~[01])*)*",
}

_WHOLE = {
    "date": "$date",
    "time": "$time",
    "date-time": "$date[Tt]$time",
    "duration": "P(?:(?:$duration_date)(?:$duration_time)?|$duration_time|${count}W)",
    "email": "$email",
    "idn-email": "$idn_email",
    "hostname": "$hostname",
    "ipv4": "$ipv4",
    "ipv6": "$ipv6",
    "uri": "$uri",
    "uri-reference": "(?:$uri|$relative)",
    "uuid": "$uuid",
    "json-pointer": "$pointer",
    "relative-json-pointer": "(?:0|[1-9][0-9]*)(?:#|$pointer)",
}

_INEXACT = frozenset({"time", "date-time", "duration", "hostname", "email", "idn-email"})
_AS_WRITTEN = frozenset({"hostname", "email", "idn-email", "uri", "uri-reference", "ipv6"})  # their states fill pages
_MORE_LABELS, _LEAST_LABELS = 6, 3  # after the first: mail.example.co.uk has to be there
_LABEL, _SHORT_LABEL, _BEFORE_HOST = 63, 30, {"hostname": 0, "email": 65, "idn-email": 18}  # characters at most
_NOT_REGULAR = {"regex": "patterns nest their groups", "idn-hostname": "its limits hold for the encoded form"}


def format_automaton(name: str, high: int | None = None) -> Automaton | None:
    """The texts of a format; None if it is not known, so that it says nothing. With `high` only those of so few parts
    that none has more characters, where few enough are left out for that.

    Raises Unsupported for a format of the specification that is not regular.
    """
    if name in _NOT_REGULAR:
        raise Unsupported(f"the format {name}: {_NOT_REGULAR[name]}")
    if name not in _WHOLE:
        return None
    most = _MORE_LABELS
    if name in _BEFORE_HOST and high is not None:
        fitting = (high - _BEFORE_HOST[name] - _LABEL) // (1 + _SHORT_LABEL)
        most = min(most, fitting) if fitting >= _LEAST_LABELS else most
    return _automaton(name, most)


@remembered(maxsize=64, keep=of_the_program)
def _automaton(name: str, more_labels: int) -> Automaton:
    compiled = pattern_as_written if name in _AS_WRITTEN else pattern
    return compiled(_pattern(name, more_labels))


def is_exact(name: str) -> bool:
    """Whether the automaton of a format admits all that its specification does."""
    return name not in _INEXACT


def _pattern(name: str, more_labels: int = _MORE_LABELS) -> str:
    return f"^(?:{_filled(_WHOLE[name], {**_PARTS, 'more_labels': str(more_labels)})})$"


def _filled(text: str, parts: Mapping[str, str]) -> str:
    """The pattern with its named parts filled in."""
    template = Template(text)
    return template.substitute({part: _filled(parts[part], parts) for part in template.get_identifiers()})
