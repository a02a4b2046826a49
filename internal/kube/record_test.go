// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"
)

func TestWhatContradictsTheRecord(t *testing.T) {
	const here, there = "/subscriptions/s/resourceGroups/rg", "/subscriptions/s/resourceGroups/other"
	for _, tt := range []struct {
		about          string
		record         Record
		cluster, place string
		says           string // "" for nothing
	}{
		{"nothing on record", Record{}, "prod", here, ""},
		{"the same", Record{ClusterName: "prod", Place: here}, "prod", strings.ToUpper(here), ""},
		{"the place is not on record", Record{ClusterName: "prod"}, "prod", here, ""},
		{"another name", Record{Namespace: "weir-system", ClusterName: "prod", Place: here}, "prdo", here,
			`--cluster-name "prdo": this cluster's load balancers and public IPs are recorded under the name "prod" (ConfigMap weir-system/weir-controller)`},
		{"capitals, which names in Azure do not tell apart, but people do", Record{ClusterName: "prod", Place: here}, "Prod", here, `Set --cluster-name "prod"; to give up`},
		{"another resource group", Record{ClusterName: "prod", Place: here}, "prod", there, "azure.json has load balancers in " + there + ": this cluster's are recorded in " + here},
	} {
		err := tt.record.Contradicts(tt.cluster, tt.place)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.about, err, tt.says)
		}
	}
}
