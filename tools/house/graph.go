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
	file        string
	returnCount int
	refs        map[*node]bool
}

// graph holds the references between the functions of a tree.
type graph struct {
	tree        *tree
	nodes       map[any]*node // keyed by types.Object, or by *ast.FuncLit for a literal stored in a field
	namedTypes  []*types.Named
	usedMethods map[*types.Func]bool
	// excluded are the functions that a walk enters only if it starts there.
	excluded []string
}

func newGraph(t *tree, excluded []string) *graph {
	g := &graph{tree: t, excluded: excluded, nodes: map[any]*node{}, usedMethods: map[*types.Func]bool{}}
	for _, p := range t.packages {
		g.collectTypes(p)
		for _, f := range p.files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					fn, ok := p.info.Defs[d.Name].(*types.Func)
					if ok && d.Body != nil {
						g.addReferences(p, g.functionNode(fn, d.Pos()), d.Body)
					}
				case *ast.GenDecl:
					g.collectVariables(p, d)
				}
			}
		}
	}
	for m := range g.usedMethods {
		g.linkImplementers(m)
	}
	return g
}

func (g *graph) nodeFor(key any, name string) *node {
	n := g.nodes[key]
	if n == nil {
		n = &node{name: name, refs: map[*node]bool{}}
		g.nodes[key] = n
	}
	return n
}

func (g *graph) functionNode(fn *types.Func, at token.Pos) *node {
	n := g.nodeFor(fn, g.fullName(fn))
	n.file = g.tree.fileAt(at)
	return n
}

// fullName returns a qualified name such as "internal/controllers.(*Cluster).Setup".
func (g *graph) fullName(fn *types.Func) string {
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

func (g *graph) collectTypes(p *pkg) {
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		if o, ok := scope.Lookup(name).(*types.TypeName); ok && !o.IsAlias() {
			if n, ok := o.Type().(*types.Named); ok && n.TypeParams().Len() == 0 && !types.IsInterface(n) {
				g.namedTypes = append(g.namedTypes, n)
			}
		}
	}
}

// collectVariables links each package variable to what its initial value mentions.
func (g *graph) collectVariables(p *pkg, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		s, ok := spec.(*ast.ValueSpec)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for _, id := range s.Names {
			if o := p.info.Defs[id]; o != nil {
				for _, v := range s.Values {
					g.addReferences(p, g.nodeFor(o, id.Name), v)
				}
			}
		}
	}
}

// addReferences records in from everything that code mentions.
func (g *graph) addReferences(p *pkg, from *node, code ast.Node) {
	ast.Inspect(code, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.ReturnStmt:
			from.returnCount++
		case *ast.AssignStmt:
			return !g.linkAssignments(p, from, x)
		case *ast.CallExpr:
			g.linkArguments(p, x)
		case *ast.KeyValueExpr:
			if id, ok := x.Key.(*ast.Ident); ok && g.linkValue(p, p.info.Uses[id], x.Value) {
				return false
			}
		case *ast.Ident:
			g.addReference(p, from, p.info.Uses[x])
		}
		return true
	})
}

// linkAssignments records assignments to function-typed fields and package variables, and reports whether there were any.
func (g *graph) linkAssignments(p *pkg, from *node, s *ast.AssignStmt) bool {
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
		found = found || isFuncHolder(o) && i == 0
		if isFuncHolder(o) {
			g.linkValue(p, o, s.Rhs[i])
		} else if found {
			g.addReferences(p, from, s.Rhs[i])
		}
	}
	return found
}

// linkArguments links function-typed parameters to the arguments of a call.
func (g *graph) linkArguments(p *pkg, call *ast.CallExpr) {
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
	if !ok || fn.Pkg() == nil || !g.inModule(fn.Pkg()) {
		return
	}
	params := fn.Origin().Signature().Params()
	for i, arg := range call.Args {
		at := min(i, params.Len()-1)
		if _, literal := arg.(*ast.FuncLit); at >= 0 && !literal && isFuncType(params.At(at)) {
			g.addReferences(p, g.nodeFor(params.At(at), params.At(at).Name()), arg)
		}
	}
}

func isFuncType(v *types.Var) bool {
	_, ok := v.Type().Underlying().(*types.Signature)
	return ok
}

// isFuncHolder reports whether o is a field or package variable of function type.
func isFuncHolder(o types.Object) bool {
	v, ok := o.(*types.Var)
	if !ok || !v.IsField() && (v.Pkg() == nil || v.Parent() != v.Pkg().Scope()) {
		return false
	}
	return isFuncType(v)
}

// linkValue links a function-typed field or package variable to value; it returns false for other objects.
func (g *graph) linkValue(p *pkg, o types.Object, value ast.Expr) bool {
	if !isFuncHolder(o) {
		return false
	}
	field := g.nodeFor(originOf(o), o.Name())
	if lit, ok := value.(*ast.FuncLit); ok {
		n := g.nodeFor(lit, fmt.Sprintf("%s.%s = func", p.path, o.Name()))
		n.file = g.tree.fileAt(lit.Pos())
		field.refs[n] = true
		g.addReferences(p, n, lit.Body)
		return true
	}
	g.addReferences(p, field, value)
	return true
}

func (g *graph) addReference(p *pkg, from *node, o types.Object) {
	switch o := o.(type) {
	case *types.Func:
		fn := o.Origin()
		if recv := fn.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) && fn.Pkg() != nil && strings.Contains(fn.Pkg().Path(), ".") {
			g.usedMethods[fn] = true
		} else if fn.Pkg() == nil || !g.inModule(fn.Pkg()) {
			return
		}
		from.refs[g.nodeFor(fn, g.fullName(fn))] = true
	case *types.Var:
		if o.Pkg() != nil && g.inModule(o.Pkg()) && (isFuncType(o) || !o.IsField() && o.Parent() == o.Pkg().Scope()) {
			from.refs[g.nodeFor(originOf(o), o.Name())] = true
		}
	}
}

func (g *graph) inModule(p *types.Package) bool {
	return strings.HasPrefix(p.Path(), g.tree.module+"/")
}

// originOf returns the generic declaration of an instantiated field.
func originOf(o types.Object) types.Object {
	if v, ok := o.(*types.Var); ok {
		return v.Origin()
	}
	return o
}

// linkImplementers links an interface method to its implementations.
func (g *graph) linkImplementers(m *types.Func) {
	i, ok := m.Signature().Recv().Type().Underlying().(*types.Interface)
	if !ok {
		return
	}
	from := g.nodeFor(m, g.fullName(m))
	for _, n := range g.namedTypes {
		ptr := types.NewPointer(n)
		if !types.Implements(ptr, i) {
			continue
		}
		o, _, _ := types.LookupFieldOrMethod(ptr, false, m.Pkg(), m.Name())
		if fn, ok := o.(*types.Func); ok && fn.Pkg() != nil && g.inModule(fn.Pkg()) {
			from.refs[g.nodeFor(fn.Origin(), g.fullName(fn.Origin()))] = true
		}
	}
}
