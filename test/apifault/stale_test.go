// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
)

// The watches break while a change waits for its second try: one node joins, another leaves. All
// watches recover except the one of endpoints, where the leaving node became a member again. It is
// not removed; the other one joins. After the watch recovers, members are removed as usual.
func TestNoMemberIsRemovedByWhatMayBeOld(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.failWrite()
	broken := time.Now()
	remove := []func(){
		s.proxy.AddRule(apifault.Rule{Request: apifault.Request{Verb: "watch", Resource: "endpointslices"}, Fault: apifault.Fault{Hang: true}}),
		s.proxy.AddRule(apifault.Rule{Request: apifault.Request{Verb: "list", Resource: "endpointslices"}, Fault: apifault.Fault{Hang: true}}),
	}
	s.proxy.ResetConnections()
	s.moveEndpoints(1, 2, 3)
	s.waitInSync(1, 2, 3)
	s.waitFault(3 * time.Second)
	controlplane.WaitUntil(t, func() string {
		if c := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSynced); !strings.Contains(c.Message, "1 of them remain until the watches of the API server are in sync again") {
			return c.Message
		}
		return ""
	})
	for _, f := range remove {
		f()
	}
	s.proxy.ResetConnections()
	s.waitInSync(1, 2, 3)
	for _, p := range s.putsSince(broken) {
		if !slices.Contains(p.holds, s.ip(2)) {
			t.Errorf("%v was written, without node 2, which was a member", p)
		}
	}
	s.moveEndpoints(3)
	s.waitInSync(3)
	s.checkRecorded()
}
