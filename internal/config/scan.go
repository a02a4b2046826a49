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

const maxDepth = 100

// scanner validates JSON. Unlike encoding/json, its errors include a fix.
type scanner struct {
	text []byte
	at   int
	// offsets maps the path of each value to its offset.
	offsets map[string]int
}

// syntaxError is an error and its fix. It contains no value, which may be secret.
type syntaxError struct {
	at   int
	text string
}

func (s *scanner) newError(at int, format string, args ...any) *syntaxError {
	return &syntaxError{at, fmt.Sprintf(format, args...)}
}

func (s *scanner) nextByte() byte {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func (s *scanner) readValue(path, key string, depth int) *syntaxError {
	c := s.nextByte()
	s.offsets[path] = s.at
	switch {
	case depth > maxDepth:
		return s.newError(s.at, "values are nested deeper than %d", maxDepth)
	case c == '{':
		return s.readMembers(path, '}', depth)
	case c == '[':
		return s.readMembers(path, ']', depth)
	case c == '"':
		_, p := s.readString()
		return p
	case strings.IndexByte(",}]", c) >= 0:
		return s.newError(s.at, "the value%s is missing: write it before %c", keySuffix(key), c)
	}
	return s.readLiteral()
}

func (s *scanner) readMembers(path string, end byte, depth int) *syntaxError {
	keys := map[string]bool{}
	for n, comma := 0, 0; ; n++ {
		s.at++ // the first bracket, or a comma
		switch c := s.nextByte(); {
		case c == end && n > 0:
			return s.newError(comma, "a comma (,) before %c: remove it", end)
		case c == end:
			s.at++
			return nil
		case c == ',':
			return s.newError(s.at, "one comma (,) too many: remove it")
		case s.bracketError(end) != nil:
			return s.bracketError(end)
		}
		var p *syntaxError
		if end == '}' {
			p = s.readMember(path, keys, depth)
		} else {
			p = s.readValue(fmt.Sprintf("%s[%d]", path, n), "", depth+1)
		}
		if p != nil {
			return p
		}
		switch s.nextByte() {
		case end:
			s.at++
			return nil
		case ',':
			comma = s.at
		default:
			return s.commaError(end)
		}
	}
}

func (s *scanner) readMember(path string, keys map[string]bool, depth int) *syntaxError {
	from := s.at
	if c := s.nextByte(); c != '"' {
		return s.keyError()
	}
	key, p := s.readString()
	if p != nil {
		return p
	}
	if keys[key] {
		return s.newError(from, "key %q is given twice: remove one", visiblePath(key))
	}
	keys[key] = true
	switch c := s.nextByte(); {
	case c == ':':
	case c == '=':
		return s.newError(s.at, "= is not JSON: write a colon (:)")
	case s.characterError() != nil:
		return s.characterError()
	default:
		return s.newError(s.at, "a colon (:) is missing before this")
	}
	s.at++
	if path != "" {
		path += "."
	}
	return s.readValue(path+key, key, depth+1)
}

func (s *scanner) readString() (text string, p *syntaxError) {
	from := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			if json.Unmarshal(s.text[from:s.at], &text) != nil { // the scan was valid
				return "", s.newError(from, "a text that is not JSON")
			}
			return text, nil
		case c == '\\':
			if !isEscape(s.text[s.at+1:]) {
				return "", s.newError(s.at, `a single backslash (\) in a text: write \\`)
			}
			s.at++
		case c == '\n' || c == '\r':
			return "", s.newError(from, `the closing quote (") of this text is missing`)
		case c < ' ':
			return "", s.newError(s.at, `a control character in a text: write \t for a tab, \n for a new line`)
		}
	}
	return "", s.newError(from, `the closing quote (") of this text is missing`)
}

func isEscape(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	if text[0] != 'u' {
		return strings.IndexByte(`"\/bfnrt`, text[0]) >= 0
	}
	return len(text) > 4 && len(bytes.Trim(text[1:5], "0123456789abcdefABCDEF")) == 0
}

var foreignLiterals = map[string]string{
	"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false",
	"null": "null", "none": "null", "nil": "null", "undefined": "null", "nan": "a number", "infinity": "a number",
}

func (s *scanner) readLiteral() *syntaxError {
	if p := s.characterError(); p != nil {
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
	if instead, ok := foreignLiterals[strings.ToLower(word)]; ok {
		return s.newError(from, "%s is not JSON: write %s", word, instead)
	}
	if word != "" && strings.IndexByte("0123456789+-.", word[0]) >= 0 {
		return s.newError(from, "a number that is not JSON: write digits without a leading zero, or put it between double quotes if it is a text")
	}
	return s.newError(from, "a value without quotes: put it between double quotes")
}

func (s *scanner) keyError() *syntaxError {
	if p := s.characterError(); p != nil {
		return p
	}
	const instead = "put it between double quotes, for a file that begins with { is JSON"
	word := s.text[s.at:]
	if end := bytes.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		word = word[:end]
	}
	if isKey(string(word)) {
		return s.newError(s.at, "key %s without quotes: %s", word, instead)
	}
	return s.newError(s.at, "a key without quotes: %s", instead)
}

func (s *scanner) commaError(end byte) *syntaxError {
	if p := s.bracketError(end); p != nil {
		return p
	}
	if s.text[s.at] == ';' {
		return s.newError(s.at, "; is not JSON: write a comma (,)")
	}
	if p := s.characterError(); p != nil {
		return p
	}
	if s.text[s.at] != '"' && s.text[s.at-1] == '"' {
		return s.newError(s.at, `a double quote (") or a comma (,) is missing before this, or a double quote is one too many`)
	}
	return s.newError(s.at, "a comma (,) is missing before this")
}

func (s *scanner) bracketError(end byte) *syntaxError {
	text := "an object"
	if end == ']' {
		text = "a list"
	}
	switch {
	case s.at == len(s.text):
		return s.newError(s.at, "the file ends here, and %c is missing", end)
	case s.text[s.at] != end && strings.IndexByte("}]", s.text[s.at]) >= 0:
		return s.newError(s.at, "%c where %c belongs: %s ends with %c", s.text[s.at], end, text, end)
	}
	return nil
}

func (s *scanner) characterError() *syntaxError {
	rest := s.text[s.at:]
	r, _ := utf8.DecodeRune(rest)
	switch {
	case len(rest) == 0:
		return s.newError(s.at, "the file ends here, and a value is missing")
	case strings.ContainsRune("'`´‘’“”„«»", r):
		return s.newError(s.at, `%c is not JSON: write a double quote (")`, r)
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")):
		return s.newError(s.at, "a comment (%s): JSON has none within the object: remove it", rest[:2])
	case r == '#':
		return s.newError(s.at, "a comment (#): JSON has none within the object: remove it")
	case r > ' ' && unicode.IsSpace(r), r == '\ufeff', r == '\u200b':
		return s.newError(s.at, "a space that is not JSON: write an ordinary space")
	}
	return nil
}

func keySuffix(key string) string {
	if isKey(key) {
		return " of key " + key
	}
	return ""
}

func isKey(name string) bool {
	fields := map[string]reflect.Value{}
	collectFields(reflect.ValueOf(&Config{}).Elem(), fields)
	collectFields(reflect.ValueOf(&LoadBalancerConfiguration{}).Elem(), fields)
	_, ok := fields[strings.ToLower(name)]
	return ok && name != "" || slices.ContainsFunc(slices.Concat(unsupportedKeys, otherKeys), func(k string) bool { return strings.EqualFold(k, name) })
}
