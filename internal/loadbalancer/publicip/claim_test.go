// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func TestClaim(t *testing.T) {
	for _, tt := range []struct {
		name, key, grant       string
		isInUse, isNotRetained bool
		cluster                string // of the tag after the claim; empty if it is rejected
		err                    string
	}{
		{name: "the same Service", cluster: "green"},
		{name: "another Service of the namespace", key: "shop/next", cluster: "green"},
		{name: "another namespace", key: "blog/web", err: "need a grant"},
		{name: "another namespace with a grant", key: "blog/web", grant: "blog", cluster: "green"},
		{name: "a grant for others", grant: "blog", err: "need a grant"},
		{name: "an invalid grant", grant: "Blog!", err: "correct or remove"},
		{name: "in use", isInUse: true, err: "is in use by"},
		{name: "not released", isNotRetained: true, err: "is not retained"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ip := lb.PublicIP{ID: lb.ResourceID{Name: "blue-a1"}, Tags: map[string]string{
				service.TagCluster: "blue", service.TagService: "shop/web", service.TagRetained: "2026-11-28T04:00:00Z", "team": "x",
			}}
			if tt.grant != "" {
				ip.Tags[service.NamespacesTag] = tt.grant
			}
			if tt.isInUse {
				ip.UsedBy = "/a/frontend"
			}
			if tt.isNotRetained {
				delete(ip.Tags, service.TagRetained)
			}
			next, changed, err := Claim(ip, "green", tt.key)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			key := tt.key
			if key == "" {
				key = "shop/web"
			}
			if !changed || !isRetainedFor(next, tt.cluster, key) || next.Tags["team"] != "x" || ip.Tags[service.TagCluster] != "blue" {
				t.Errorf("changed %t: %v", changed, next.Tags)
			}
			next.UsedBy = "/green/frontend" // the claim is repeated
			if _, changed, err := Claim(next, "green", tt.key); changed || err != nil {
				t.Errorf("again: %t %v", changed, err)
			}
		})
	}
}
