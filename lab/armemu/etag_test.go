// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/worlds"
)

func readEtag(t *testing.T, emu *armemu.Emulator, id string) string {
	t.Helper()
	a := sendRequest(t, emu, http.MethodGet, id, "")
	if a.status != http.StatusOK || a.header.Get("Etag") != a.stringField("etag") {
		t.Fatalf("GET %s: %d, header %q, body %q", id, a.status, a.header.Get("Etag"), a.stringField("etag"))
	}
	return a.stringField("etag")
}

// All parts of the load balancer show the same etag; the response to the PUT has it only in its
// body.
func TestEtagChangesTwice(t *testing.T) {
	for _, write := range []struct{ about, method, id, body string }{
		{"a pool", http.MethodPut, poolID, poolBody("10.0.0.1")},
		{"a new pool", http.MethodPut, lbID + "/backendAddressPools/new", poolBody()},
		{"a pool that goes", http.MethodDelete, lbID + "/backendAddressPools/spare", ""},
		{"a load balancer with members", http.MethodPut, lbID, lbBody(strings.Replace(poolBody("10.0.0.1"), "{", `{"name":"web",`, 1))},
		{"a write that fails", http.MethodPut, poolID, `{"fails":1}`},
	} {
		t.Run(write.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				emu := newCloud(t, armemu.Options{LatencyScale: 1, Behavior: worlds.BatchedWrites()})
				if strings.Contains(write.body, "fails") {
					setFaults(t, emu, `rules: [{match: {method: PUT}, action: {operation: {fail: {code: InternalServerError}}}}]`)
				}
				before := readEtag(t, emu, lbID)
				a := sendRequest(t, emu, write.method, write.id, write.body)
				if a.status >= 300 || a.header.Get("Etag") != "" {
					t.Fatalf("%d, header %q: %s", a.status, a.header.Get("Etag"), a.raw)
				}
				accepted := readEtag(t, emu, poolID)
				if write.method == http.MethodPut && a.stringField("etag") != accepted {
					t.Errorf("the answer shows %s, the pool %s", a.stringField("etag"), accepted)
				}
				time.Sleep(5 * time.Minute)
				done := readEtag(t, emu, poolID)
				if before == accepted || accepted == done {
					t.Errorf("etags: %s, accepted %s, done %s", before, accepted, done)
				}
				whole := sendRequest(t, emu, http.MethodGet, lbID, "").raw
				if n, all := strings.Count(whole, strings.ReplaceAll(done, `"`, `\"`)), strings.Count(whole, `"etag"`); n != all || n < 4 {
					t.Errorf("%d of %d etags are %s: %s", n, all, done, whole)
				}
			})
		})
	}
}

// Pool membership of interfaces and the association of a public IP change etags without a write.
func TestEtagsThatOthersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true})
		putResource(t, emu, pips+"a", lb("Standard", static))
		putResource(t, emu, otherLB, lb("Standard", ""))
		apart := strings.Replace(nic(poolID), `,"loadBalancerBackendAddressPools":[{"id":"`+poolID+`"}]`, "", 1)
		for _, step := range []struct {
			about, method, id, body string
			balancer, address       bool // expected etag changes
		}{
			{"an interface comes that is in no pool", http.MethodPut, nics + "nic", apart, false, false},
			{"it joins", http.MethodPut, nics + "nic", nic(poolID), true, false},
			{"it is written and stays", http.MethodPut, nics + "nic", nic(poolID), false, false},
			{"it leaves", http.MethodPut, nics + "nic", apart, true, false},
			{"it joins again", http.MethodPut, nics + "nic", nic(poolID), true, false},
			{"it is deleted", http.MethodDelete, nics + "nic", "", true, false},
			{"the address is taken", http.MethodPut, otherLB, withFrontends(publicFrontend("fe", "a")), false, true},
			{"its user is written", http.MethodPut, otherLB, strings.Replace(withFrontends(publicFrontend("fe", "a")), "{", `{"tags":{"a":"b"},`, 1), false, false},
			{"it is freed", http.MethodPut, otherLB, withFrontends(privateFrontend("fe", nodesID, "")), false, true},
		} {
			balancer, address := readEtag(t, emu, lbID), readEtag(t, emu, pips+"a")
			expectAccepted(t, sendRequest(t, emu, step.method, step.id, step.body))
			time.Sleep(time.Minute)
			if changed := readEtag(t, emu, lbID) != balancer; changed != step.balancer {
				t.Errorf("%s: the load balancer's etag has changed: %t", step.about, changed)
			}
			if changed := readEtag(t, emu, pips+"a") != address; changed != step.address {
				t.Errorf("%s: the public IP's etag has changed: %t", step.about, changed)
			}
		}
	})
}

func TestEtagsThatScaleSetsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		set := computeGroup + "/virtualMachineScaleSets/set"
		const version = "?api-version=2024-07-01"
		putResource(t, emu, set, `{"location":"eastus"}`)
		machine := func(pools string) string {
			return `{"location":"eastus","properties":{"networkProfileConfiguration":{"networkInterfaceConfigurations":[{"name":"n","properties":{
				"ipConfigurations":[{"name":"ip","properties":{"loadBalancerBackendAddressPools":[` + pools + `]}}]}}]}}}`
		}
		for _, step := range []struct {
			about, method, body string
			members             int
		}{
			{"it joins", http.MethodPut, machine(`{"id":"` + poolID + `"}`), 1},
			{"it leaves", http.MethodPut, machine(""), 0},
			{"it joins again", http.MethodPut, machine(`{"id":"` + poolID + `"}`), 1},
			{"it goes", http.MethodDelete, "", 0},
		} {
			before := readEtag(t, emu, lbID)
			expectAccepted(t, sendRequest(t, emu, step.method, set+"/virtualMachines/0"+version, step.body))
			time.Sleep(5 * time.Minute)
			if readEtag(t, emu, lbID) == before {
				t.Errorf("%s: the load balancer's etag is the same", step.about)
			}
			if n := strings.Count(poolAdminStates(t, emu, poolID), "="); n != step.members {
				t.Errorf("%s: the pool shows %d members, want %d", step.about, n, step.members)
			}
			if step.members > 0 { // Set Down before; the state must not survive a rejoin.
				name, _, _ := strings.Cut(poolAdminStates(t, emu, poolID), "=")
				expectAccepted(t, sendRequest(t, emu, http.MethodPut, poolID, poolWith("", poolEntry(name, "", "Down"))))
				time.Sleep(5 * time.Minute)
			}
		}
		putResource(t, emu, set+"/virtualMachines/0", machine(`{"id":"`+poolID+`"}`))
		if got := poolAdminStates(t, emu, poolID); !strings.HasSuffix(got, "=-") {
			t.Errorf("it joins after it was Down: %s", got)
		}
	})
}

func TestSnapshotKeepsEtagsOfWhatIsReferredTo(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	putResource(t, emu, nics+"nic", nic(poolID))
	putResource(t, emu, pips+"a", lb("Standard", static))
	putResource(t, emu, otherLB, withFrontends(publicFrontend("fe", "a")))
	balancer, address := readEtag(t, emu, lbID), readEtag(t, emu, pips+"a")
	if err := emu.Restore(emu.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if readEtag(t, emu, lbID) != balancer || readEtag(t, emu, pips+"a") != address {
		t.Error("a restored cloud shows other etags")
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodDelete, nics+"nic", ""))
	if readEtag(t, emu, lbID) == balancer {
		t.Error("an interface that was restored has left, and the etag is the same")
	}
}

// Virtual networks retain their etag, subnets and public IPs do not; load balancers and pools are
// unknown.
func TestUnchangedWrites(t *testing.T) {
	both := []behavior.Result{behavior.Unchanged, behavior.Changed}
	subnet := vnetID + "/subnets/nodes"
	for _, row := range []struct {
		id, body string
		keeps    func(behavior.Result) bool
	}{
		{poolID, poolBody("10.0.0.1"), func(a behavior.Result) bool { return a == behavior.Unchanged }},
		{lbID, lbBody(strings.Replace(poolBody("10.0.0.1"), "{", `{"name":"web",`, 1)), func(a behavior.Result) bool { return a == behavior.Unchanged }},
		{lbID, lbBody(`{"name":"web"}`), func(a behavior.Result) bool { return a == behavior.Unchanged }},
		{vnetID, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`, func(behavior.Result) bool { return true }},
		{subnet, `{"properties":{"addressPrefix":"10.0.0.0/17"}}`, func(behavior.Result) bool { return false }},
		{pips + "a", lb("Standard", static), func(behavior.Result) bool { return false }},
		{group + "/networkSecurityGroups/g", `{"location":"eastus"}`, func(behavior.Result) bool { return false }},
	} {
		for _, answer := range both {
			synctest.Test(t, func(t *testing.T) {
				emu := newCloud(t, armemu.Options{LatencyScale: 1, Behavior: behavior.Behavior{
					NoChangeEtag: answer, UpdateAddresses: behavior.Accepted,
				}})
				expectAccepted(t, sendRequest(t, emu, http.MethodPut, row.id, row.body))
				time.Sleep(5 * time.Minute)
				read := sendRequest(t, emu, http.MethodGet, row.id, "")
				for _, body := range []string{row.body, read.raw} {
					before := readEtag(t, emu, row.id)
					a := sendRequest(t, emu, http.MethodPut, row.id, body)
					if a.status != http.StatusOK || a.provisioningState() != "Succeeded" || a.header.Get("Retry-After") != "" {
						t.Errorf("%s again: %d %s, Retry-After %q", row.id, a.status, a.provisioningState(), a.header.Get("Retry-After"))
					}
					if kept := readEtag(t, emu, row.id) == before; kept != row.keeps(answer) {
						t.Errorf("%s again, %s: the etag is kept: %t", row.id, answer, kept)
					}
					if got := sendRequest(t, emu, http.MethodGet, a.header.Get("Azure-AsyncOperation"), ""); got.stringField("status") != "Succeeded" {
						t.Errorf("%s again: the operation is %s", row.id, got.raw)
					}
				}
			})
		}
	}
}

// A changed body is not a repetition, even if Azure ignores the change.
func TestWritesThatChange(t *testing.T) {
	pool := strings.Replace(poolBody("10.0.0.1", "10.0.0.2"), "{", `{"name":"web",`, 1)
	for _, row := range []struct{ about, id, body string }{
		{"another order", poolID, poolBody("10.0.0.2", "10.0.0.1")},
		{"an admin state", poolID, strings.Replace(poolBody("10.0.0.1", "10.0.0.2"), `"ipAddress"`, `"adminState":"None","ipAddress"`, 1)},
		{"an address less", poolID, poolBody("10.0.0.1")},
		{"addresses that are ignored", lbID, lbBody(strings.Replace(pool, "10.0.0.2", "10.0.0.3", 1))},
		{"no addresses, which is ignored", lbID, lbBody(`{"name":"web"}`)},
		{"a field that nobody knows", poolID, strings.Replace(poolBody("10.0.0.1", "10.0.0.2"), "{", `{"x":1,`, 1)},
	} {
		synctest.Test(t, func(t *testing.T) {
			emu := newCloud(t, armemu.Options{LatencyScale: 1, Behavior: behavior.AssumedBehavior()})
			expectAccepted(t, sendRequest(t, emu, http.MethodPut, lbID, lbBody(pool)))
			expectAccepted(t, sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1", "10.0.0.2")))
			time.Sleep(5 * time.Minute)
			if a := sendRequest(t, emu, http.MethodPut, row.id, row.body); a.provisioningState() != "Updating" {
				t.Errorf("%s: %d %s", row.about, a.status, a.raw)
			}
		})
	}
}
