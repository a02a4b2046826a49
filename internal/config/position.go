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

// position formats the line and column of an offset, in characters from 1.
func position(content []byte, offset int) string {
	before := content[:min(max(offset, 0), len(content))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", lineAt(content, offset), 1+utf8.RuneCount(line))
}

// namesKey matches an error about the value of a key.
var namesKey = regexp.MustCompile(`^key ("(?:[^"\\]|\\.)*")`)

// located prefixes such an error with the position of the value.
func located(content []byte, err error) error {
	named := namesKey.FindStringSubmatch(err.Error())
	if named == nil {
		return err
	}
	path, quoted := strconv.Unquote(named[1])
	if where := positions(content)[strings.ToLower(path)]; quoted == nil && where != "" {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// positions returns the position of each value by lower-case path; empty if the file is invalid.
func positions(content []byte) map[string]string {
	content = bytes.TrimPrefix(content, byteOrderMark)
	all := map[string]string{}
	if at := beginning(content); content[at] == '{' {
		s := scan{text: content, at: at, where: map[string]int{}}
		if s.value("", "", 0) == nil {
			for _, path := range slices.SortedFunc(maps.Keys(s.where), func(a, b string) int { return cmp.Compare(s.where[a], s.where[b]) }) {
				all[strings.ToLower(path)] = position(content, s.where[path]) // last duplicate wins
			}
		}
		return all
	}
	var document yaml.Node
	if yaml.Unmarshal(content, &document) == nil && len(document.Content) == 1 {
		addPositions(all, document.Content[0], "")
	}
	return all
}

func addPositions(all map[string]string, n *yaml.Node, path string) {
	if path != "" {
		all[strings.ToLower(path)] = fmt.Sprintf("line %d, column %d", n.Line, n.Column)
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			addPositions(all, item, fmt.Sprintf("%s[%d]", path, i))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			addPositions(all, n.Content[i+1], strings.TrimPrefix(path+"."+n.Content[i].Value, "."))
		}
	}
}
