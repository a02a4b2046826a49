// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// uncheckedPackages lists packages whose files change often at the moment; they are not checked.
var uncheckedPackages = []string{
	"internal/loadbalancer", // public IPs, security groups and conflicts are moving out
}

// fileLine matches a line of a package comment's indented file list; "*" is a wildcard.
var fileLine = regexp.MustCompile(`(?m)^\t((?:[\w*]+\.go(?:, )?)+)(?:\s|$)`)

// TestPackageCommentFileLists compares the file lists in package comments with the
// files. A list is optional, and the file that contains it may be omitted.
func TestPackageCommentFileLists(t *testing.T) {
	lists := 0
	for dir, files := range goFiles(t, "..") {
		listed, doc := filesInComment(t, dir, files)
		if len(listed) == 0 {
			continue
		}
		lists++
		name := filepath.ToSlash(strings.TrimPrefix(dir, ".."+string(filepath.Separator)))
		if slices.Contains(uncheckedPackages, name) {
			continue
		}
		for _, w := range compareFiles(files, listed, doc) {
			t.Errorf("%s: the package comment %s", name, w)
		}
	}
	if lists < 10 {
		t.Errorf("only %d package comments list files: is the list still found?", lists)
	}
}

// compareFiles returns the differences between a list and the files.
func compareFiles(files, listed []string, doc string) []string {
	var wrong []string
	for _, f := range files {
		if f != doc && !slices.ContainsFunc(listed, func(l string) bool { return names(l, f) }) {
			wrong = append(wrong, "does not name "+f)
		}
	}
	for i, l := range listed {
		switch {
		case !slices.ContainsFunc(files, func(f string) bool { return names(l, f) }):
			wrong = append(wrong, "names "+l+", which is not there")
		case slices.Contains(listed[:i], l):
			wrong = append(wrong, "names "+l+" twice")
		}
	}
	return wrong
}

// names reports whether a list entry matches a file.
func names(entry, file string) bool {
	ok, err := filepath.Match(entry, file)
	return ok && err == nil
}

func TestCompareFiles(t *testing.T) {
	comment := "Package x.\n\n\ta.go    one\n\tb.go, c.go  two\n\ta.go\n\tv_*.go  each\n\tw_*.go  none\n\nSee d.go, and\n\n\te.md is no Go file\n"
	listed := namesIn(comment)
	if !slices.Equal(listed, []string{"a.go", "b.go", "c.go", "a.go", "v_*.go", "w_*.go"}) {
		t.Fatalf("got %q", listed)
	}
	got := compareFiles([]string{"a.go", "b.go", "doc.go", "v_1.go", "v_2.go", "z.go"}, listed, "doc.go")
	want := []string{"does not name z.go", "names c.go, which is not there", "names a.go twice", "names w_*.go, which is not there"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func namesIn(comment string) []string {
	var names []string
	for _, m := range fileLine.FindAllStringSubmatch(comment, -1) {
		for name := range strings.SplitSeq(strings.TrimRight(m[1], ", "), ", ") {
			names = append(names, name)
		}
	}
	return names
}

// goFiles returns the Go files by directory, without tests and generated files.
func goFiles(t *testing.T, root string) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && name != ".."):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated."):
			files[filepath.Dir(path)] = append(files[filepath.Dir(path)], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// filesInComment returns the files that a package comment lists, and the file that contains the comment.
func filesInComment(t *testing.T, dir string, files []string) (listed []string, doc string) {
	t.Helper()
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Doc == nil {
			continue
		}
		if names := namesIn(parsed.Doc.Text()); len(names) > 0 {
			listed, doc = append(listed, names...), f
		}
	}
	return listed, doc
}
