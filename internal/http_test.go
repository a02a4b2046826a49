// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// serverFunctions are the functions and types that start a server without package httpserver, by import path.
var serverFunctions = map[string]map[string]bool{
	"net/http":                   {"ListenAndServe": true, "ListenAndServeTLS": true, "Serve": true, "ServeTLS": true, "Server": true, "DefaultServeMux": true, "HandleFunc": true, "Handle": true},
	"net/http/pprof":             {"": true},
	"net/rpc":                    {"": true},
	"google.golang.org/grpc":     {"NewServer": true},
	"golang.org/x/net/http2":     {"Server": true},
	"golang.org/x/net/http2/h2c": {"": true},
	"sigs.k8s.io/controller-runtime/pkg/webhook": {"": true},
}

// Every server of a shipped program is created by package httpserver, HTTP clients bound the response
// headers, and controller-runtime's own servers are off.
func TestServersAndClientsAreBounded(t *testing.T) {
	found := 0
	for _, root := range []string{"../internal", "../cmd", "../lab"} {
		for dir := range goFiles(t, root) {
			files, err := filepath.Glob(filepath.Join(dir, "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if !strings.HasSuffix(file, "_test.go") {
					found++
					for _, problem := range findUnbounded(t, file, nil) {
						t.Error(problem)
					}
				}
			}
		}
	}
	if found < 300 {
		t.Errorf("only %d files were read", found)
	}
}

func TestUnboundedReads(t *testing.T) {
	for body, want := range map[string]string{
		"var _ = http.Server{}":                             "http.Server",
		"func f() { _ = http.ListenAndServe(\"\", nil) }":   "http.ListenAndServe",
		"func f() { http.HandleFunc(\"/\", nil) }":          "http.HandleFunc",
		"var _ = http.Transport{}":                          "MaxResponseHeaderBytes",
		"var _ = http.Transport{MaxResponseHeaderBytes: 1}": "",
		"var _ = http.Client{}":                             "http.Client without a Transport",
		"var _ = http.Client{Transport: nil}":               "",
		"func f() { _, _ = http.Get(\"\") }":                "http.Get",
		"var _ = http.DefaultClient":                        "http.DefaultClient",
		"var _ = http.DefaultTransport":                     "http.DefaultTransport",
		"func f() { t := http.DefaultTransport.(*http.Transport).Clone(); t.MaxResponseHeaderBytes = 1 }": "",
		"var _ = ctrl.Options{}": "HealthProbeBindAddress",
		"var _ = ctrl.Options{HealthProbeBindAddress: \"0\", Metrics: metricsserver.Options{BindAddress: \"0\"}}": "",
	} {
		got := findUnbounded(t, "x.go", "package x\nimport (\n\"net/http\"\nctrl \"sigs.k8s.io/controller-runtime\"\nmetricsserver \"sigs.k8s.io/controller-runtime/pkg/metrics/server\"\n)\n"+body)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: %v, want %q", body, got, want)
		}
	}
}

// findUnbounded returns the violations in a file; src overrides its content unless nil.
func findUnbounded(t *testing.T, file string, src any) (problems []string) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	lab := strings.HasPrefix(file, "../lab/") || strings.HasPrefix(file, "../cmd/weirlab/") // for developers, on loopback
	if strings.HasPrefix(file, "../internal/observe/httpserver/") {
		return nil
	}
	format := func(at ast.Node, about string) {
		problems = append(problems, set.Position(at.Pos()).String()+": "+about)
	}
	imports := map[string]string{}
	for _, spec := range parsed.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if path == "sigs.k8s.io/controller-runtime" && spec.Name == nil {
			name = "controllerruntime"
		}
		imports[name] = path
		if serverFunctions[path][""] && !lab {
			format(spec, path+" serves without package httpserver")
		}
	}
	named := func(e ast.Expr) (path, name string) {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return "", ""
		}
		x, ok := s.X.(*ast.Ident)
		if !ok {
			return "", ""
		}
		return imports[x.Name], s.Sel.Name
	}
	limitsHeaders := slices.ContainsFunc(assignedFields(parsed), func(name string) bool { return name == "MaxResponseHeaderBytes" })
	types := map[ast.Node]bool{} // type names, which create nothing
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			types[n.X] = true
		case *ast.CompositeLit:
			path, name := named(n.Type)
			fields := keys(n)
			types[n.Type] = true
			switch subject := path + "." + name; {
			case subject == "net/http.Server" && lab:
				if !fields["ReadHeaderTimeout"] || !fields["MaxHeaderBytes"] {
					format(n, "http.Server without ReadHeaderTimeout and MaxHeaderBytes")
				}
			case serverFunctions[path][name]:
				format(n, "http.Server: use package httpserver")
			case subject == "net/http.Transport" && !fields["MaxResponseHeaderBytes"] && !lab:
				format(n, "http.Transport without MaxResponseHeaderBytes")
			case subject == "net/http.Client" && !fields["Transport"] && !lab:
				format(n, "http.Client without a Transport")
			case subject == "sigs.k8s.io/controller-runtime.Options" && (!fields["HealthProbeBindAddress"] || !fields["Metrics"]),
				subject == "sigs.k8s.io/controller-runtime/pkg/manager.Options":
				format(n, "ctrl.Options: set HealthProbeBindAddress and Metrics to \"0\", and use process.AddMonitoring")
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "HealthProbeBindAddress" || key.Name == "PprofBindAddress") {
				if v, ok := n.Value.(*ast.BasicLit); !ok || v.Value != `"0"` {
					format(n, key.Name+": want \"0\", and process.AddMonitoring")
				}
			}
		case *ast.SelectorExpr:
			path, name := named(n)
			switch {
			case types[n] || lab:
			case serverFunctions[path][name]:
				format(n, "http."+name+": use package httpserver")
			case path == "net/http" && (name == "Get" || name == "Post" || name == "Head" || name == "PostForm" || name == "DefaultClient"),
				path == "net/http" && name == "DefaultTransport" && !limitsHeaders:
				format(n, "http."+name+": response headers are not bounded")
			}
		}
		return true
	})
	return problems
}

func keys(lit *ast.CompositeLit) map[string]bool {
	keys := map[string]bool{}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				keys[key.Name] = true
			}
		}
	}
	return keys
}

// assignedFields returns the names of the fields that a file sets.
func assignedFields(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, l := range a.Lhs {
				if s, ok := l.(*ast.SelectorExpr); ok {
					names = append(names, s.Sel.Name)
				}
			}
		}
		return true
	})
	return names
}
