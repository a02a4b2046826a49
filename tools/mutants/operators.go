// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mutant replaces the bytes From..To of a file by New.
type mutant struct {
	File     string // relative to the module
	Line     int
	Operator string
	From, To int
	New      string
}

// swappedOperators maps an operator to the one it is easily confused with.
var swappedOperators = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// findMutants returns the mutants of a file, in source order.
func findMutants(name string, text []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	m := &mutator{name: name, text: text, fset: fset}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			m.visitFunction(fn.Type, fn.Body)
		}
	}
	slices.SortStableFunc(m.all, func(a, b mutant) int { return a.From - b.From })
	return m.all, nil
}

type mutator struct {
	name string
	text []byte
	fset *token.FileSet
	all  []mutant
}

func (m *mutator) offset(at token.Pos) int { return m.fset.Position(at).Offset }

func (m *mutator) sourceOf(n ast.Node) string {
	return string(m.text[m.offset(n.Pos()):m.offset(n.End())])
}

func (m *mutator) addMutant(operator string, from, to token.Pos, text string) {
	m.all = append(m.all, mutant{m.name, m.fset.Position(from).Line, operator, m.offset(from), m.offset(to), text})
}

func (m *mutator) replaceNode(operator string, n ast.Node, text string) {
	m.addMutant(operator, n.Pos(), n.End(), text)
}

// visitFunction collects the mutants of a function body; of supplies the result types.
func (m *mutator) visitFunction(of *ast.FuncType, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			m.visitFunction(n.Type, n.Body)
			return false
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok {
				if m.isLogCall(call) {
					return false
				}
				m.replaceNode("remove call", n, "")
			}
		case *ast.DeferStmt:
			m.replaceNode("remove defer", n, "")
		case *ast.AssignStmt:
			m.removeAssignment(n)
		case *ast.IncDecStmt:
			m.replaceNode("remove statement", n, "")
		case *ast.BranchStmt:
			if n.Tok == token.CONTINUE && n.Label == nil {
				m.replaceNode("break for continue", n, "break")
			}
		case *ast.IfStmt:
			if m.isLogOnly(n) {
				return false
			}
			m.replaceNode("negate condition", n.Cond, "!("+m.sourceOf(n.Cond)+")")
		case *ast.BinaryExpr:
			if other, ok := swappedOperators[n.Op]; ok {
				m.addMutant("swap operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String())
			}
		case *ast.BasicLit:
			if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
				m.replaceNode("change constant", n, strconv.Itoa(v+1))
			}
		case *ast.Ident:
			if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
				m.replaceNode("change constant", n, other)
			}
		case *ast.ReturnStmt:
			m.zeroResults(of, n)
		}
		return true
	})
}

// removeAssignment removes an assignment but still evaluates its value, so that no identifier becomes unused.
func (m *mutator) removeAssignment(s *ast.AssignStmt) {
	if s.Tok == token.DEFINE || len(s.Lhs) != len(s.Rhs) {
		return
	}
	blanks := make([]string, len(s.Lhs))
	for i, l := range s.Lhs {
		if id, ok := l.(*ast.Ident); ok && id.Name == "_" {
			return
		}
		blanks[i] = "_"
	}
	if s.Tok != token.ASSIGN {
		m.replaceNode("remove statement", s, "_ = "+m.sourceOf(s.Rhs[0]))
		return
	}
	m.addMutant("remove statement", s.Lhs[0].Pos(), s.Lhs[len(s.Lhs)-1].End(), strings.Join(blanks, ", "))
}

// isLogCall reports whether the call only writes a log line, which no test checks.
func (m *mutator) isLogCall(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	on := strings.ToLower(m.sourceOf(s.X))
	return on == "log" || on == "slog" || strings.HasSuffix(on, ".log")
}

// isLogOnly reports whether the if statement does nothing but log.
func (m *mutator) isLogOnly(s *ast.IfStmt) bool {
	if s.Else != nil || s.Init != nil {
		return false
	}
	return !slices.ContainsFunc(s.Body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			return true
		}
		call, ok := e.X.(*ast.CallExpr)
		return !ok || !m.isLogCall(call)
	})
}

// zeroResults replaces the results of a return by zero values.
func (m *mutator) zeroResults(of *ast.FuncType, s *ast.ReturnStmt) {
	if len(s.Results) == 0 || of.Results == nil {
		return
	}
	var zeros []string
	for _, f := range of.Results.List {
		for range max(1, len(f.Names)) {
			zeros = append(zeros, "*new("+m.sourceOf(f.Type)+")")
		}
	}
	got := make([]string, len(s.Results))
	complete := true
	for i, r := range s.Results {
		got[i] = m.sourceOf(r)
		complete = complete && (slices.Contains([]string{"nil", "false", "0", `""`}, got[i]) || strings.HasSuffix(got[i], "{}"))
	}
	if complete || len(got) == 1 && (got[0] == "true" || strings.HasPrefix(got[0], "*new(")) { // covered by another operator
		return
	}
	m.addMutant("return zero", s.Results[0].Pos(), s.Results[len(s.Results)-1].End(), strings.Join(zeros, ", "))
}

// formatDiff returns the changed lines, before and after.
func (m mutant) formatDiff(text []byte) string {
	first := bytes.LastIndexByte(text[:m.From], '\n') + 1
	last := len(text)
	if i := bytes.IndexByte(text[m.To:], '\n'); i >= 0 {
		last = m.To + i
	}
	var b strings.Builder
	for line := range strings.Lines(string(text[first:last])) {
		fmt.Fprintf(&b, "- %s\n", strings.TrimSpace(line))
	}
	changed := string(text[first:m.From]) + m.New + string(text[m.To:last])
	for line := range strings.Lines(changed) {
		fmt.Fprintf(&b, "+ %s\n", strings.TrimSpace(line))
	}
	return b.String()
}
