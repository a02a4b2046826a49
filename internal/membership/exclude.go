// SPDX-License-Identifier: Apache-2.0

package membership

import "strings"

// Labels that keep a node out of every pool. The first is Kubernetes' own, the
// second is that of nodes which Azure does not manage.
const (
	labelExclude = "node.kubernetes.io/exclude-from-external-load-balancers"
	labelManaged = "kubernetes.azure.com/managed"
)

// controlPlaneLabels mark a node of the control plane; the last two are older spellings.
var controlPlaneLabels = []struct{ key, value string }{
	{"node-role.kubernetes.io/control-plane", ""},
	{"node-role.kubernetes.io/master", ""},
	{"kubernetes.io/role", "master"},
}

// Excluded returns why a node with these labels never takes traffic from a load
// balancer, or "" if it may. Control-plane nodes are excluded unless azure.json
// says excludeMasterFromStandardLB: false.
func Excluded(labels map[string]string, controlPlaneToo bool) string {
	if _, ok := labels[labelExclude]; ok {
		return "it is labelled " + labelExclude
	}
	if strings.EqualFold(labels[labelManaged], "false") {
		return "it is labelled " + labelManaged + "=false"
	}
	if !controlPlaneToo {
		return ""
	}
	for _, l := range controlPlaneLabels {
		if value, ok := labels[l.key]; ok && (l.value == "" || value == l.value) {
			return "it is a control-plane node (label " + l.key + ")"
		}
	}
	return ""
}

// ExcludedByLabel reports whether a label keeps a node out that others set and remove while the node
// serves. Those of control-plane nodes are not among them.
func ExcludedByLabel(labels map[string]string) bool { return Excluded(labels, false) != "" }
