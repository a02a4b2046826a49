// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// node is a function, or a reference that leads to functions: an interface method, field or variable.
type node struct {
	name string
	// file is the path of a function's file; empty for a reference.
	file    string
	returns int
	to      map[*node]bool
}

// graph holds the references between the functions of a tree.
type graph struct {
	tree  *tree
	nodes map[any]*node // keyed by types.Object, or by *ast.FuncLit for a literal stored in a field
	kinds []*types.Named
	asked map[*types.Func]bool
	// apart are the functions that a walk enters only if it starts there.
	apart []string
}

func newGraph(t *tree, excluded []string) *graph {
	g := &graph{tree: t, apart: excluded, nodes: map[any]*node{}, asked: map[*types.Func]bool{}}
	for _, p := range t.packages {
		g.named(p)
		for _, f := range p.files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					fn, ok := p.info.Defs[d.Name].(*types.Func)
					if ok && d.Body != nil {
						g.walk(p, g.function(fn, d.Pos()), d.Body)
					}
				case *ast.GenDecl:
					g.variables(p, d)
				}
			}
		}
	}
	for m := range g.asked {
		g.implementers(m)
	}
	return g
}

func (g *graph) of(key any, name string) *node {
	n := g.nodes[key]
	if n == nil {
		n = &node{name: name, to: map[*node]bool{}}
		g.nodes[key] = n
	}
	return n
}

func (g *graph) function(fn *types.Func, at token.Pos) *node {
	n := g.of(fn, g.name(fn))
	n.file = g.tree.file(at)
	return n
}

// name returns a qualified name such as "internal/kube.(*Cluster).Setup".
func (g *graph) name(fn *types.Func) string {
	path := ""
	if fn.Pkg() != nil {
		path = strings.TrimPrefix(fn.Pkg().Path(), g.tree.module+"/") + "."
	}
	recv := fn.Signature().Recv()
	if recv == nil {
		return path + fn.Name()
	}
	star, t := "", recv.Type()
	if p, ok := t.(*types.Pointer); ok {
		star, t = "*", p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return fmt.Sprintf("%s(%s%s).%s", path, star, n.Obj().Name(), fn.Name())
	}
	return path + fn.Name()
}

func (g *graph) named(p *pkg) {
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		if o, ok := scope.Lookup(name).(*types.TypeName); ok && !o.IsAlias() {
			if n, ok := o.Type().(*types.Named); ok && n.TypeParams().Len() == 0 && !types.IsInterface(n) {
				g.kinds = append(g.kinds, n)
			}
		}
	}
}

// variables links each package variable to what its initial value mentions.
func (g *graph) variables(p *pkg, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		s, ok := spec.(*ast.ValueSpec)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for _, id := range s.Names {
			if o := p.info.Defs[id]; o != nil {
				for _, v := range s.Values {
					g.walk(p, g.of(o, id.Name), v)
				}
			}
		}
	}
}

// walk records in from everything that code mentions.
func (g *graph) walk(p *pkg, from *node, code ast.Node) {
	ast.Inspect(code, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.ReturnStmt:
			from.returns++
		case *ast.AssignStmt:
			return !g.assigns(p, from, x)
		case *ast.CallExpr:
			g.hands(p, x)
		case *ast.KeyValueExpr:
			if id, ok := x.Key.(*ast.Ident); ok && g.holds(p, p.info.Uses[id], x.Value) {
				return false
			}
		case *ast.Ident:
			g.mention(p, from, p.info.Uses[x])
		}
		return true
	})
}

// assigns records assignments to function-typed fields and package variables, and reports whether there were any.
func (g *graph) assigns(p *pkg, from *node, s *ast.AssignStmt) bool {
	if len(s.Lhs) != len(s.Rhs) {
		return false
	}
	found := false
	for i, to := range s.Lhs {
		var o types.Object
		switch to := to.(type) {
		case *ast.SelectorExpr:
			o = p.info.Uses[to.Sel]
		case *ast.Ident:
			o = p.info.Uses[to]
		}
		found = found || holder(o) && i == 0
		if holder(o) {
			g.holds(p, o, s.Rhs[i])
		} else if found {
			g.walk(p, from, s.Rhs[i])
		}
	}
	return found
}

// hands links function-typed parameters to the arguments of a call.
func (g *graph) hands(p *pkg, call *ast.CallExpr) {
	var id *ast.Ident
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return
	}
	fn, ok := p.info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() == nil || !g.own(fn.Pkg()) {
		return
	}
	params := fn.Origin().Signature().Params()
	for i, arg := range call.Args {
		at := min(i, params.Len()-1)
		if _, literal := arg.(*ast.FuncLit); at >= 0 && !literal && callable(params.At(at)) {
			g.walk(p, g.of(params.At(at), params.At(at).Name()), arg)
		}
	}
}

func callable(v *types.Var) bool {
	_, is := v.Type().Underlying().(*types.Signature)
	return is
}

// holder reports whether o is a field or package variable of function type.
func holder(o types.Object) bool {
	v, ok := o.(*types.Var)
	if !ok || !v.IsField() && (v.Pkg() == nil || v.Parent() != v.Pkg().Scope()) {
		return false
	}
	return callable(v)
}

// holds links a function-typed field or package variable to value; it returns false for other objects.
func (g *graph) holds(p *pkg, o types.Object, value ast.Expr) bool {
	if !holder(o) {
		return false
	}
	field := g.of(origin(o), o.Name())
	if lit, ok := value.(*ast.FuncLit); ok {
		n := g.of(lit, fmt.Sprintf("%s.%s = func", p.path, o.Name()))
		n.file = g.tree.file(lit.Pos())
		field.to[n] = true
		g.walk(p, n, lit.Body)
		return true
	}
	g.walk(p, field, value)
	return true
}

func (g *graph) mention(p *pkg, from *node, o types.Object) {
	switch o := o.(type) {
	case *types.Func:
		fn := o.Origin()
		if recv := fn.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) && fn.Pkg() != nil && strings.Contains(fn.Pkg().Path(), ".") {
			g.asked[fn] = true
		} else if fn.Pkg() == nil || !g.own(fn.Pkg()) {
			return
		}
		from.to[g.of(fn, g.name(fn))] = true
	case *types.Var:
		if o.Pkg() != nil && g.own(o.Pkg()) && (callable(o) || !o.IsField() && o.Parent() == o.Pkg().Scope()) {
			from.to[g.of(origin(o), o.Name())] = true
		}
	}
}

func (g *graph) own(p *types.Package) bool { return strings.HasPrefix(p.Path(), g.tree.module+"/") }

// origin returns the generic declaration of an instantiated field.
func origin(o types.Object) types.Object {
	if v, ok := o.(*types.Var); ok {
		return v.Origin()
	}
	return o
}

// implementers links an interface method to its implementations.
func (g *graph) implementers(m *types.Func) {
	i, ok := m.Signature().Recv().Type().Underlying().(*types.Interface)
	if !ok {
		return
	}
	from := g.of(m, g.name(m))
	for _, n := range g.kinds {
		ptr := types.NewPointer(n)
		if !types.Implements(ptr, i) {
			continue
		}
		o, _, _ := types.LookupFieldOrMethod(ptr, false, m.Pkg(), m.Name())
		if fn, ok := o.(*types.Func); ok && fn.Pkg() != nil && g.own(fn.Pkg()) {
			from.to[g.of(fn.Origin(), g.name(fn.Origin()))] = true
		}
	}
}
