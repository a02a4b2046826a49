// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// decode splits the file into its keys. What begins with a brace is JSON: as YAML, one with a
// quote missing may have another meaning, in which a secret is a key.
func decode(content []byte) (map[string]json.RawMessage, error) {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	switch {
	case len(bytes.TrimSpace(content)) == 0:
		return nil, errors.New("the file is empty")
	case !utf8.Valid(content):
		return nil, errors.New("the file is not UTF-8: save it as such")
	}
	if at := beginning(content); content[at] == '{' {
		return decodeJSON(content, at)
	}
	return decodeYAML(content)
}

// beginning returns where the first value stands, behind comments and what begins a YAML
// document; the end of the file is its last byte.
func beginning(content []byte) int {
	at := 0
	for line := range bytes.Lines(content) {
		text := bytes.TrimSpace(line)
		if rest, ok := bytes.CutPrefix(text, []byte("---")); ok {
			text = bytes.TrimSpace(rest)
		}
		if len(text) > 0 && text[0] != '#' && text[0] != '%' {
			return at + bytes.Index(line, text[:1])
		}
		at += len(line)
	}
	return len(content) - 1
}

// decodeJSON reads the object that begins at an offset, behind which comments may stand.
func decodeJSON(content []byte, at int) (keys map[string]json.RawMessage, err error) {
	decoder := json.NewDecoder(bytes.NewReader(content[at:]))
	if err := decoder.Decode(&keys); err != nil {
		end := len(content) // cut off
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			end = at + int(syntax.Offset)
		}
		return nil, fmt.Errorf("line %d: this is not JSON, which a file that begins with { has to be: a quote, a comma, a colon or a bracket is missing there or before, or is one too many",
			lineAt(content, end))
	}
	for rest := at + int(decoder.InputOffset()); rest < len(content); {
		line, _, _ := bytes.Cut(content[rest:], []byte("\n"))
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			return nil, fmt.Errorf("line %d: something stands after top-level value: one object is the whole file", lineAt(content, rest))
		}
		rest += len(line) + 1
	}
	if key, end := twice(content[at:]); end > 0 {
		return nil, fmt.Errorf("line %d: key %q is given twice: remove one", lineAt(content, at+end), shown(key))
	}
	return keys, nil
}

// twice returns a key that an object of a JSON value has twice, and where that ends. Decoding takes
// the last and is silent about the others.
func twice(value []byte) (key string, end int) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	type open struct {
		keys map[string]bool // nil of a list
		wait bool            // for the value of a key
	}
	var within []open
	for {
		token, err := decoder.Token()
		if err != nil { // the end: it was decoded before
			return "", 0
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			if within = within[:len(within)-1]; len(within) == 0 {
				return "", 0
			}
			continue
		}
		if n := len(within); n > 0 && within[n-1].keys != nil {
			in := &within[n-1]
			if in.wait = !in.wait; in.wait {
				name, _ := token.(string)
				if in.keys[name] {
					return name, int(decoder.InputOffset())
				}
				in.keys[name] = true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			within = append(within, open{keys: map[string]bool{}})
		case json.Delim('['):
			within = append(within, open{})
		}
	}
}

// lineAt returns in which line an offset is.
func lineAt(content []byte, offset int) int {
	return 1 + bytes.Count(content[:min(max(offset, 0), len(content))], []byte("\n"))
}

func decodeYAML(content []byte) (keys map[string]json.RawMessage, err error) {
	if line := secondDocument(content); line > 0 {
		return nil, fmt.Errorf("line %d: a second YAML document begins: put all keys into one", line)
	}
	converted, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, yamlProblem(err)
	}
	if err := json.Unmarshal(converted, &keys); err != nil || keys == nil {
		return nil, errors.New("want a mapping of keys to values, such as {\"subscriptionId\": …}")
	}
	return keys, nil
}

var (
	yamlLine  = regexp.MustCompile(`line ([0-9]{1,9})`)
	yamlTwice = regexp.MustCompile(`key "([A-Za-z]{1,64})" already set`)
)

// yamlProblem says where the library found a problem, in words of our own: its words quote
// what stands there.
func yamlProblem(err error) error {
	where := ""
	if line := yamlLine.FindStringSubmatch(err.Error()); line != nil {
		where = "line " + line[1] + ": "
	}
	if key := yamlTwice.FindStringSubmatch(err.Error()); key != nil {
		return fmt.Errorf("%skey %q is given twice: remove one", where, key[1])
	}
	return errors.New(where + "this is not YAML: check indentation, colons and quotes there and before, and that no key is given twice")
}

// secondDocument returns the line in which a second YAML document begins, or 0. The
// library below reads the first and is silent about the rest.
func secondDocument(content []byte) int {
	begun := false
	for i, line := range strings.Split(string(content), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "---") && begun:
			return i + 1
		case strings.HasPrefix(line, "---"), text == "", strings.HasPrefix(text, "#"), strings.HasPrefix(text, "%"):
		default:
			begun = true
		}
	}
	return 0
}
