// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// formatPosition formats the line and column of an offset, in characters from 1.
func formatPosition(content []byte, offset int) string {
	before := content[:min(max(offset, 0), len(content))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", lineNumber(content, offset), 1+utf8.RuneCount(line))
}

// keyErrorPattern matches an error about the value of a key.
var keyErrorPattern = regexp.MustCompile(`^key ("(?:[^"\\]|\\.)*")`)

// addPosition prefixes such an error with the position of the value.
func addPosition(content []byte, err error) error {
	named := keyErrorPattern.FindStringSubmatch(err.Error())
	if named == nil {
		return err
	}
	path, quoted := strconv.Unquote(named[1])
	if where := valuePositions(content)[strings.ToLower(path)]; quoted == nil && where != "" {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// valuePositions returns the position of each value by lower-case path; empty if the file is invalid.
func valuePositions(content []byte) map[string]string {
	content = bytes.TrimPrefix(content, byteOrderMark)
	positions := map[string]string{}
	if at := valueOffset(content); content[at] == '{' {
		s := scanner{text: content, at: at, offsets: map[string]int{}}
		if s.readValue("", "", 0) == nil {
			for _, path := range slices.SortedFunc(maps.Keys(s.offsets), func(a, b string) int { return cmp.Compare(s.offsets[a], s.offsets[b]) }) {
				positions[strings.ToLower(path)] = formatPosition(content, s.offsets[path]) // last duplicate wins
			}
		}
		return positions
	}
	var document yaml.Node
	if yaml.Unmarshal(content, &document) == nil && len(document.Content) == 1 {
		addPositions(positions, document.Content[0], "")
	}
	return positions
}

func addPositions(positions map[string]string, n *yaml.Node, path string) {
	if path != "" {
		positions[strings.ToLower(path)] = fmt.Sprintf("line %d, column %d", n.Line, n.Column)
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			addPositions(positions, item, fmt.Sprintf("%s[%d]", path, i))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			addPositions(positions, n.Content[i+1], strings.TrimPrefix(path+"."+n.Content[i].Value, "."))
		}
	}
}
