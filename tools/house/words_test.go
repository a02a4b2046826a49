// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const wordsFile = "testdata/words.txt"

// bannedWords are words that comments, docs and messages of projects in this field hardly use.
var bannedWords = strings.Fields(`anew asked asks beside besides brings brought goes gone hear heard hears lets meanwhile nobody
	people said says shall somebody stands stays tell tells told who whoever whom whose`)

// TestBannedWords fails when the comments, string literals or Markdown of a folder have more banned words than
// testdata/words.txt allows. Its numbers may only shrink.
func TestBannedWords(t *testing.T) {
	counts, err := countBannedWords("../..")
	if err != nil {
		t.Fatal(err)
	}
	allowed := readNumbers(t, wordsFile)
	remaining := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > allowed[name] {
			t.Errorf("%s: %d banned words, allowed are %d; the list is in tools/house/words_test.go", name, n, allowed[name])
		}
		if n := min(counts[name], allowed[name]); n > 0 {
			remaining[name] = n
		}
	}
	if *lowerExceptions {
		writeNumbers(t, wordsFile, "# How many banned words each folder may have.", "Words", remaining)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if slack := allowed[name] - remaining[name]; slack*10 > allowed[name] {
			t.Errorf("%s: %d is more than a tenth above what there is: run go test ./tools/house -run Words -lower", name, allowed[name])
		}
	}
}

func TestBannedWordsAreCounted(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/a.go", "// Package a says it to nobody.\npackage a\n\n//go:generate tells\n\nconst text = \"who goes there\"\n")
	write("a/a_test.go", "package a\n\nconst other = \"somebody\" // whose\n")
	write("docs/guide/x.md", "Weir tells people.\n\n```\nwho\n```\n\n`who` whom\n")
	write("CHANGELOG.md", "who\n")
	got, err := countBannedWords(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"a comments": 3, "a strings": 2, "docs/guide docs": 3}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// countBannedWords counts the banned words below root, by folder and by "comments", "strings" or "docs". It skips
// strings of tests and the changelog.
func countBannedWords(root string) (map[string]int, error) {
	counts := map[string]int{}
	add := func(path, unit, text string) {
		if n := countIn(text); n > 0 {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err == nil {
				counts[filepath.ToSlash(dir)+" "+unit] += n
			}
		}
	}
	return counts, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin"):
			return fs.SkipDir
		case d.IsDir() || name == "CHANGELOG.md":
			return nil
		case strings.HasSuffix(name, ".md"):
			text, err := os.ReadFile(path)
			add(path, "docs", codeInMarkdown.ReplaceAllString(string(text), ""))
			return err
		case strings.HasSuffix(name, ".go") && name != "words_test.go":
			return addGoFile(path, add)
		}
		return nil
	})
}

var codeInMarkdown = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|<!--.*?-->")

func addGoFile(path string, add func(path, unit, text string)) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		add(path, "comments", group.Text()) // without directives
	}
	if strings.HasSuffix(path, "_test.go") {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				add(path, "strings", text)
			}
		}
		return true
	})
	return nil
}

var wordPattern = regexp.MustCompile(`[A-Za-z]+`)

func countIn(text string) (n int) {
	for _, w := range wordPattern.FindAllString(text, -1) {
		if slices.Contains(bannedWords, strings.ToLower(w)) {
			n++
		}
	}
	return n
}
