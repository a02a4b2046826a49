// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The ServiceAccounts of config/, config/page and config/provisioning.
const (
	serviceAccount     = "system:serviceaccount:weir-system:weir"
	pageAccount        = "system:serviceaccount:weir-system:weir-page"
	provisionerAccount = "system:serviceaccount:weir-system:weir-provisioner"
)

// A permission is one verb on one resource. An empty namespace is cluster-wide, an empty name is
// any object.
type permission struct{ verb, group, resource, namespace, name string }

func (p permission) String() string {
	name := p.verb + " " + formatResource(p.resource, p.group)
	if p.name != "" {
		name += " " + p.name
	}
	if p.namespace != "" {
		name += " in " + p.namespace
	}
	return name
}

// formatResource formats a resource and subresource like kubectl.
func formatResource(resource, group string) string {
	name, sub, _ := strings.Cut(resource, "/")
	return strings.TrimSuffix(strings.TrimSuffix(name+"."+group, ".")+"/"+sub, "/")
}

func (p permission) covers(call permission) bool {
	return p.verb == call.verb && p.group == call.group && p.resource == call.resource &&
		(p.namespace == "" || p.namespace == call.namespace) && (p.name == "" || p.name == call.name && call.verb != "create")
}

// A shippedRole is a role in config/.
type shippedRole struct {
	file, name, namespace string
	rules                 []rbacv1.PolicyRule
	bound                 bool   // by config/
	account               string // that it is bound to
}

// shippedRoles reads the roles. A Role without a namespace is installed in Weir's.
func shippedRoles(t *testing.T) []shippedRole {
	t.Helper()
	files, err := filepath.Glob("../../config/*/*role*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var roles []shippedRole
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(raw), "\n---\n") {
			var role rbacv1.Role
			if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			switch role.Kind {
			case "Role":
				roles = append(roles, shippedRole{file, role.Name, cmp.Or(role.Namespace, "weir-system"), role.Rules, true, boundTo(t, file, raw)})
			case "ClusterRole":
				roles = append(roles, shippedRole{file, role.Name, "", role.Rules, strings.Contains(string(raw), "kind: ClusterRoleBinding"), boundTo(t, file, raw)})
			}
		}
	}
	if len(roles) == 0 {
		t.Fatal("config/ ships no role")
	}
	return roles
}

// boundTo returns the account that a file binds its role to. The role for Provisions' namespaces is
// bound by their administrators, to the provisioner.
func boundTo(t *testing.T, file string, raw []byte) string {
	t.Helper()
	for doc := range strings.SplitSeq(string(raw), "\n---\n") {
		var binding rbacv1.RoleBinding
		if err := yaml.Unmarshal([]byte(doc), &binding); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(binding.Subjects) == 1 {
			return "system:serviceaccount:" + binding.Subjects[0].Namespace + ":" + binding.Subjects[0].Name
		}
	}
	if filepath.Base(file) != "namespace-role.yaml" {
		t.Fatalf("%s binds its role to no account", file)
	}
	return provisionerAccount
}

func (r shippedRole) permissions(rule rbacv1.PolicyRule) []permission {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var permissions []permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				for _, verb := range rule.Verbs {
					permissions = append(permissions, permission{verb, group, resource, r.namespace, name})
				}
			}
		}
	}
	return permissions
}

// A madeCall is a request of one of the accounts, and the role that allowed it, if any.
type madeCall struct {
	permission
	account, role string
}

// auditEvent is the part of an audit log entry that is read.
type auditEvent struct {
	Verb, UserAgent  string
	ImpersonatedUser struct{ Username string }
	ObjectRef        *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Annotations      map[string]string
}

var allowedBy = regexp.MustCompile(`^RBAC: allowed by .* of (?:Cluster)?Role "([^"]+)" to ServiceAccount`)

// madeCalls returns the accounts' distinct object requests in all tests so far.
func madeCalls(t *testing.T) []madeCall {
	t.Helper()
	seen := map[madeCall]bool{}
	for _, name := range controlPlanes.auditLogs() {
		readCalls(t, name, seen)
	}
	return slices.Collect(maps.Keys(seen))
}

// readCalls adds the requests in an audit log.
func readCalls(t *testing.T, name string, seen map[madeCall]bool) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %s", err, lines.Text())
		}
		account := e.ImpersonatedUser.Username
		if account != serviceAccount && account != pageAccount && account != provisionerAccount || e.ObjectRef == nil {
			continue
		}
		if account == serviceAccount && strings.HasPrefix(e.UserAgent, "weir-cli/") { // a user's command, as in helm test
			continue
		}
		o, call := e.ObjectRef, madeCall{account: account}
		call.permission = permission{e.Verb, o.APIGroup, strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"), o.Namespace, o.Name}
		if by := allowedBy.FindStringSubmatch(e.Annotations["authorization.k8s.io/reason"]); by != nil {
			call.role = by[1]
		}
		seen[call] = true
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// checkRoles compares roles and calls: a role allows each call, and each permission was used and
// came from its role. Missing permissions must be added by hand.
func checkRoles(t *testing.T, whole bool) {
	roles, calls := shippedRoles(t), madeCalls(t)
	if len(calls) == 0 {
		t.Fatal("the audit log has no call of the controller")
	}
	missing := map[string]permission{} // one of each kind
	for _, call := range calls {
		if !slices.ContainsFunc(roles, func(r shippedRole) bool { return r.account == call.account && r.allows(call.permission) }) {
			missing[call.account+" may not "+call.verb+" "+formatResource(call.resource, call.group)] = call.permission
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("no role in config/ allows it: %s: %s", name, missing[name])
	}
	for _, r := range roles {
		if whole {
			r.checkUnused(t, calls)
		}
	}
}

// checkUnused checks each verb of each rule.
func (r shippedRole) checkUnused(t *testing.T, calls []madeCall) {
	used := func(p permission) bool {
		return slices.ContainsFunc(calls, func(c madeCall) bool { return c.account == r.account && c.role == r.name && p.covers(c.permission) })
	}
	for i, rule := range r.rules {
		var verbs []string
		for _, verb := range rule.Verbs {
			needed := true
			single := rule
			single.Verbs = []string{verb}
			for _, p := range r.permissions(single) {
				if !used(p) {
					needed = false
					t.Errorf("%s: %s allows what no test uses: %s", r.file, r.name, p)
				}
			}
			if needed {
				verbs = append(verbs, verb)
			}
		}
		if rewriting() && len(verbs) > 0 {
			r.rewrite(t, i, verbs)
		}
	}
}

var verbsLine = regexp.MustCompile(`verbs: \[[^]]*\]`)

// rewrite replaces the verbs of the nth rule and keeps the file's comments. Each file has one role.
func (r shippedRole) rewrite(t *testing.T, nth int, verbs []string) {
	raw, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	n := -1
	raw = verbsLine.ReplaceAllFunc(raw, func(line []byte) []byte {
		if n++; n != nth {
			return line
		}
		return []byte("verbs: [" + strings.Join(verbs, ", ") + "]")
	})
	if err := os.WriteFile(r.file, raw, 0o644); err != nil { //nolint:gosec // it is published
		t.Fatal(err)
	}
}

func (r shippedRole) allows(call permission) bool {
	return slices.ContainsFunc(r.rules, func(rule rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(r.permissions(rule), func(p permission) bool { return p.covers(call) })
	})
}

// rolesPage renders the table of roles for the reference.
func rolesPage(t *testing.T) string {
	var page strings.Builder
	page.WriteString("| Account | Role | Resource | Verbs | Where |\n|---|---|---|---|---|\n")
	for _, r := range shippedRoles(t) {
		for _, rule := range r.rules {
			where := "the cluster"
			switch {
			case r.namespace != "":
				where = "`" + r.namespace + "`"
			case !r.bound:
				where = "namespaces where it is bound"
			}
			for _, name := range rule.ResourceNames {
				where += ", `" + name + "` alone"
			}
			for _, p := range r.permissions(rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: []string{""}}) {
				fmt.Fprintf(&page, "| `%s` | [`%s`](%s) | `%s` | %s | %s |\n", r.account[strings.LastIndex(r.account, ":")+1:], r.name, r.file, formatResource(p.resource, p.group), strings.Join(rule.Verbs, ", "), where)
			}
		}
	}
	return page.String()
}
