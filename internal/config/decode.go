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

var byteOrderMark = []byte("\xef\xbb\xbf")

// decodeFile splits the file into its keys. Text that begins with a brace is only parsed as JSON: as YAML, a
// missing quote could turn a secret into a key.
func decodeFile(content []byte) (map[string]json.RawMessage, error) {
	content = bytes.TrimPrefix(content, byteOrderMark)
	switch {
	case len(bytes.TrimSpace(content)) == 0:
		return nil, errors.New("the file is empty")
	case !utf8.Valid(content):
		return nil, errors.New("the file is not UTF-8: save it as such")
	}
	if at := valueOffset(content); content[at] == '{' {
		return decodeJSON(content, at)
	}
	return decodeYAML(content)
}

// valueOffset skips comments and YAML document markers.
func valueOffset(content []byte) int {
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

// decodeJSON allows only comments after the object.
func decodeJSON(content []byte, at int) (keys map[string]json.RawMessage, err error) {
	s := scanner{text: content, at: at, offsets: map[string]int{}}
	if p := s.readValue("", "", 0); p != nil {
		return nil, fmt.Errorf("%s: %s", formatPosition(content, p.at), p.text)
	}
	for rest := s.at; rest < len(content); {
		line, _, _ := bytes.Cut(content[rest:], []byte("\n"))
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			return nil, fmt.Errorf("%s: content after the top-level value: the file must be one object", formatPosition(content, rest+bytes.Index(line, text)))
		}
		rest += len(line) + 1
	}
	if json.Unmarshal(content[at:s.at], &keys) != nil { // the scan was valid
		return nil, errors.New("this is not JSON")
	}
	return keys, nil
}

func lineNumber(content []byte, offset int) int {
	return 1 + bytes.Count(content[:min(max(offset, 0), len(content))], []byte("\n"))
}

func decodeYAML(content []byte) (keys map[string]json.RawMessage, err error) {
	if line := secondDocument(content); line > 0 {
		return nil, fmt.Errorf("line %d: a second YAML document begins: put all keys into one", line)
	}
	if at := tabOffset(content); at >= 0 {
		return nil, fmt.Errorf("%s: a tab that indents: write spaces", formatPosition(content, at))
	}
	converted, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, yamlError(err)
	}
	if err := json.Unmarshal(converted, &keys); err != nil || keys == nil {
		return nil, errors.New("want a mapping of keys to values, such as {\"subscriptionId\": …}")
	}
	return keys, nil
}

// tabOffset returns the offset of the first tab used as indentation, or -1.
func tabOffset(content []byte) int {
	if where := tabIndent.FindIndex(content); where != nil {
		return where[1] - 1
	}
	return -1
}

var (
	tabIndent     = regexp.MustCompile(`(?m)^ *\t`)
	yamlLine      = regexp.MustCompile(`line ([0-9]{1,9})`)
	yamlDuplicate = regexp.MustCompile(`key "([A-Za-z]{1,64})" already set`)
)

// yamlError keeps the line of a YAML error, but not its text, which quotes the file.
func yamlError(err error) error {
	where := ""
	if line := yamlLine.FindStringSubmatch(err.Error()); line != nil {
		where = "line " + line[1] + ": "
	}
	if key := yamlDuplicate.FindStringSubmatch(err.Error()); key != nil {
		return fmt.Errorf("%skey %q is given twice: remove one", where, key[1])
	}
	return errors.New(where + "this is not YAML: check indentation, colons and quotes there and before, and that no key is given twice")
}

// secondDocument returns the line of a second YAML document, which the YAML library would ignore, or 0.
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
