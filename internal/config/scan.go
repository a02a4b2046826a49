// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const deepestJSON = 100

// scan validates JSON. Unlike encoding/json, its errors include a fix.
type scan struct {
	text []byte
	at   int
	// where maps the path of each value to its offset.
	where map[string]int
}

// problem is an error and its fix. It contains no value, which may be secret.
type problem struct {
	at   int
	text string
}

func (s *scan) problem(at int, format string, args ...any) *problem {
	return &problem{at, fmt.Sprintf(format, args...)}
}

func (s *scan) peek() byte {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func (s *scan) value(path, key string, depth int) *problem {
	c := s.peek()
	s.where[path] = s.at
	switch {
	case depth > deepestJSON:
		return s.problem(s.at, "values are nested deeper than %d", deepestJSON)
	case c == '{':
		return s.members(path, '}', depth)
	case c == '[':
		return s.members(path, ']', depth)
	case c == '"':
		_, p := s.quoted()
		return p
	case strings.IndexByte(",}]", c) >= 0:
		return s.problem(s.at, "the value%s is missing: write it before %c", ofKey(key), c)
	}
	return s.bare()
}

func (s *scan) members(path string, end byte, depth int) *problem {
	keys := map[string]bool{}
	for n, comma := 0, 0; ; n++ {
		s.at++ // the first bracket, or a comma
		switch c := s.peek(); {
		case c == end && n > 0:
			return s.problem(comma, "a comma (,) before %c: remove it", end)
		case c == end:
			s.at++
			return nil
		case c == ',':
			return s.problem(s.at, "one comma (,) too many: remove it")
		case s.closes(end) != nil:
			return s.closes(end)
		}
		var p *problem
		if end == '}' {
			p = s.member(path, keys, depth)
		} else {
			p = s.value(fmt.Sprintf("%s[%d]", path, n), "", depth+1)
		}
		if p != nil {
			return p
		}
		switch s.peek() {
		case end:
			s.at++
			return nil
		case ',':
			comma = s.at
		default:
			return s.noComma(end)
		}
	}
}

func (s *scan) member(path string, keys map[string]bool, depth int) *problem {
	from := s.at
	if c := s.peek(); c != '"' {
		return s.noKey()
	}
	key, p := s.quoted()
	if p != nil {
		return p
	}
	if keys[key] {
		return s.problem(from, "key %q is given twice: remove one", shown(key))
	}
	keys[key] = true
	switch c := s.peek(); {
	case c == ':':
	case c == '=':
		return s.problem(s.at, "= is not JSON: write a colon (:)")
	case s.foreign() != nil:
		return s.foreign()
	default:
		return s.problem(s.at, "a colon (:) is missing before this")
	}
	s.at++
	if path != "" {
		path += "."
	}
	return s.value(path+key, key, depth+1)
}

func (s *scan) quoted() (text string, p *problem) {
	from := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			if json.Unmarshal(s.text[from:s.at], &text) != nil { // the scan was valid
				return "", s.problem(from, "a text that is not JSON")
			}
			return text, nil
		case c == '\\':
			if !escapes(s.text[s.at+1:]) {
				return "", s.problem(s.at, `a single backslash (\) in a text: write \\`)
			}
			s.at++
		case c == '\n' || c == '\r':
			return "", s.problem(from, `the closing quote (") of this text is missing`)
		case c < ' ':
			return "", s.problem(s.at, `a control character in a text: write \t for a tab, \n for a new line`)
		}
	}
	return "", s.problem(from, `the closing quote (") of this text is missing`)
}

func escapes(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	if text[0] != 'u' {
		return strings.IndexByte(`"\/bfnrt`, text[0]) >= 0
	}
	return len(text) > 4 && len(bytes.Trim(text[1:5], "0123456789abcdefABCDEF")) == 0
}

var otherWords = map[string]string{
	"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false",
	"null": "null", "none": "null", "nil": "null", "undefined": "null", "nan": "a number", "infinity": "a number",
}

func (s *scan) bare() *problem {
	if p := s.foreign(); p != nil {
		return p
	}
	from := s.at
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n,:;{}[]\"'#=", s.text[s.at]) < 0 {
		s.at++
	}
	word := string(s.text[from:s.at])
	if json.Valid([]byte(word)) {
		return nil
	}
	if instead, is := otherWords[strings.ToLower(word)]; is {
		return s.problem(from, "%s is not JSON: write %s", word, instead)
	}
	if word != "" && strings.IndexByte("0123456789+-.", word[0]) >= 0 {
		return s.problem(from, "a number that is not JSON: write digits without a leading zero, or put it between double quotes if it is a text")
	}
	return s.problem(from, "a value without quotes: put it between double quotes")
}

func (s *scan) noKey() *problem {
	if p := s.foreign(); p != nil {
		return p
	}
	const instead = "put it between double quotes, for a file that begins with { is JSON"
	word := s.text[s.at:]
	if end := bytes.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		word = word[:end]
	}
	if isKey(string(word)) {
		return s.problem(s.at, "key %s without quotes: %s", word, instead)
	}
	return s.problem(s.at, "a key without quotes: %s", instead)
}

func (s *scan) noComma(end byte) *problem {
	if p := s.closes(end); p != nil {
		return p
	}
	if s.text[s.at] == ';' {
		return s.problem(s.at, "; is not JSON: write a comma (,)")
	}
	if p := s.foreign(); p != nil {
		return p
	}
	if s.text[s.at] != '"' && s.text[s.at-1] == '"' {
		return s.problem(s.at, `a double quote (") or a comma (,) is missing before this, or a double quote is one too many`)
	}
	return s.problem(s.at, "a comma (,) is missing before this")
}

func (s *scan) closes(end byte) *problem {
	what := "an object"
	if end == ']' {
		what = "a list"
	}
	switch {
	case s.at == len(s.text):
		return s.problem(s.at, "the file ends here, and %c is missing", end)
	case s.text[s.at] != end && strings.IndexByte("}]", s.text[s.at]) >= 0:
		return s.problem(s.at, "%c where %c belongs: %s ends with %c", s.text[s.at], end, what, end)
	}
	return nil
}

func (s *scan) foreign() *problem {
	rest := s.text[s.at:]
	r, _ := utf8.DecodeRune(rest)
	switch {
	case len(rest) == 0:
		return s.problem(s.at, "the file ends here, and a value is missing")
	case strings.ContainsRune("'`´‘’“”„«»", r):
		return s.problem(s.at, `%c is not JSON: write a double quote (")`, r)
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")):
		return s.problem(s.at, "a comment (%s): JSON has none within the object: remove it", rest[:2])
	case r == '#':
		return s.problem(s.at, "a comment (#): JSON has none within the object: remove it")
	case r > ' ' && unicode.IsSpace(r), r == '\ufeff', r == '\u200b':
		return s.problem(s.at, "a space that is not JSON: write an ordinary space")
	}
	return nil
}

func ofKey(key string) string {
	if isKey(key) {
		return " of key " + key
	}
	return ""
}

func isKey(name string) bool {
	fields := map[string]reflect.Value{}
	collect(reflect.ValueOf(&Config{}).Elem(), fields)
	collect(reflect.ValueOf(&LoadBalancerConfiguration{}).Elem(), fields)
	_, is := fields[strings.ToLower(name)]
	return is && name != "" || slices.ContainsFunc(slices.Concat(notYet, othersBusiness), func(k string) bool { return strings.EqualFold(k, name) })
}
