// SPDX-License-Identifier: Apache-2.0

package service

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnnotationsWithoutEffect(t *testing.T) {
	s := Service{Annotations: map[string]string{
		IdleTimeout: "5", ofPort(80, portNoRule): "true", ofPort(80, portProbePath): "/x", SourceRanges: "10.0.0.0/8",
		prefix + "aws-load-balancer-type": "nlb", prefix + "do-loadbalancer-name": "x", "example.com/azure-load-balancer": "x",
		prefix + "azure-load-balancer-intenal": "true", prefix + "azure-pls-creates": "true",
		prefix + "port_80_health_probe_port": "81", prefix + "port_http_no_lb_rule": "true",
	}}
	want := []string{
		prefix + "azure-load-balancer-intenal", prefix + "azure-pls-creates",
		prefix + "port_80_health_probe_port", prefix + "port_http_no_lb_rule",
	}
	if diff := cmp.Diff(want, s.UnknownAnnotations()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// All annotation constants are known.
func TestAllAnnotationsAreKnown(t *testing.T) {
	s := Service{Annotations: map[string]string{}}
	for _, name := range []string{"annotation.go", "privatelink.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			switch v := spec.Values[0].(type) {
			case *ast.BinaryExpr:
				if lit, ok := v.Y.(*ast.BasicLit); ok {
					text, _ := strconv.Unquote(lit.Value)
					s.Annotations[prefix+text] = "x"
				}
			case *ast.BasicLit:
				if text, _ := strconv.Unquote(v.Value); strings.HasPrefix(spec.Names[0].Name, "port") {
					s.Annotations[ofPort(80, text)] = "x"
				}
			}
			return true
		})
	}
	if unknown := s.UnknownAnnotations(); len(s.Annotations) < 44 || len(unknown) > 0 {
		t.Errorf("%d annotations, of which unknown: %v", len(s.Annotations), unknown)
	}
}
