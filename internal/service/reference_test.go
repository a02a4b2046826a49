// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/test/referencepage"
)

const page = "../../docs/reference/service-annotations.md"

// annotations returns the annotation constants without prefix, including those of ports.
func annotations(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var annotations []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			for i, value := range valuesOf(spec, ok) {
				if text, of := annotation(value); of == "prefix" {
					annotations = append(annotations, text)
				} else if strings.HasPrefix(spec.Names[i].Name, "port") {
					annotations = append(annotations, "port_<p>_"+text)
				}
			}
			return true
		})
	}
	return annotations
}

func valuesOf(spec *ast.ValueSpec, ok bool) []ast.Expr {
	if !ok {
		return nil
	}
	return spec.Values
}

// annotation returns the literal of `prefix + "literal"` or `"literal"`, and the prefix.
func annotation(value ast.Expr) (text, of string) {
	if sum, ok := value.(*ast.BinaryExpr); ok {
		if x, ok := sum.X.(*ast.Ident); ok {
			of = x.Name
		}
		value = sum.Y
	}
	if literal, ok := value.(*ast.BasicLit); ok {
		text, _ = strconv.Unquote(literal.Value)
	}
	return text, of
}

func tableRows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:azure-|load-balancer-|port_<p>_)[^`]*)` \\|.*$").FindAllStringSubmatch(string(text), -1) {
		found[row[1]] = row[0]
	}
	return found
}

// The page documents exactly the supported annotations.
func TestTheReferenceListsEveryAnnotation(t *testing.T) {
	code, shown := annotations(t), slices.Sorted(maps.Keys(tableRows(t)))
	if len(code) < 29 {
		t.Fatalf("found only %d annotations in the code: %v", len(code), code)
	}
	for _, name := range code {
		if !slices.Contains(shown, name) {
			t.Errorf("the page has no row for `%s`", name)
		}
	}
	for _, name := range shown {
		if !slices.Contains(code, name) {
			t.Errorf("the page has a row for `%s`, which nothing reads", name)
		}
	}
}

// The limits on the page match the code.
func TestTheReferenceKnowsTheBounds(t *testing.T) {
	interval, threshold := fmt.Sprintf("| %d to %d |", standardInterval, probeSpan-1), fmt.Sprintf("| %d to %d |", standardThreshold, probeSpan-1)
	of := func(annotation string) string { return strings.TrimPrefix(annotation, prefix) }
	shown := tableRows(t)
	for name, want := range map[string]string{
		of(IdleTimeout):                  fmt.Sprintf("| %d to %d | %d |", minIdleMinutes, maxIdleMinutes, minIdleMinutes),
		of(ProbeInterval):                interval + fmt.Sprintf(" %d |", standardInterval),
		of(ProbeThreshold):               threshold + fmt.Sprintf(" %d |", standardThreshold),
		"port_<p>_" + portProbeInterval:  interval,
		"port_<p>_" + portProbeThreshold: threshold,
	} {
		if !strings.Contains(shown[name], want) {
			t.Errorf("the row of `%s` does not say %q: %s", name, want, shown[name])
		}
	}
	for _, known := range []string{SharedProbeName, TagService, TagCluster, TagDNSLabel, localPath} {
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "`"+known+"`") {
			t.Errorf("the page does not know `%s` (%v)", known, err)
		}
	}
}

// The names on the page match the code.
func TestReferenceNames(t *testing.T) {
	ipv6 := func(s *Service) { s.Families = []lb.Family{lb.IPv6} }
	table := "\n| Service | family | frontend | rule | probe | pool | public IP |\n|---|---|---|---|---|---|---|\n"
	for _, s := range []struct {
		about   string
		service Service
		pools   LocalPools
	}{
		{"public", newService(), ""},
		{"IPv6 alone", newService(ipv6), ""},
		{"`externalTrafficPolicy: Local`, `healthCheckNodePort` 31000", newService(asLocal), AllNodes},
		{"`externalTrafficPolicy: Local` with pools of its own, dual stack, `healthCheckNodePort` 31000", newService(asLocal, asDualStack), OwnPools},
		{"internal", newService(asInternal), ""},
		{"internal in subnet `apps`, dual stack", newService(asInternal, asDualStack, withAnnotation(InternalSubnet, "apps")), ""},
	} {
		set := testSettings()
		set.LocalPools = s.pools
		w := buildValidSpec(t, s.service, set)
		for i, f := range w.Frontends {
			name := "none"
			if f.PublicIP != nil {
				name = f.PublicIP.ID.Name
			}
			row := fmt.Sprintf("| %s | %s | `%s` | `%s` | `%s` | `%s` | `%s` |\n", s.about, f.Frontend.Family, f.Frontend.Name, w.Rules[i].Name, w.Rules[i].Probe, w.Rules[i].Pool, name)
			row = strings.NewReplacer(owner, "<owner>", "kubernetes", "<cluster>", "`none`", "none").Replace(row)
			table += row
		}
	}
	referencepage.ExpectSection(t, page, "names", table+"\n")
}
