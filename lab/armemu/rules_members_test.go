// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

func withBehavior(b behavior.Behavior) func(*testing.T, *armemu.Emulator) {
	return func(t *testing.T, emu *armemu.Emulator) {
		withInterface(t, emu)
		if err := emu.SetBehavior(b); err != nil {
			t.Fatal(err)
		}
	}
}

func memberViolations() []ruleViolation {
	user, pool := group+"/loadBalancers/user", userPool("p")
	member, stranger := poolEntry("rg_nicip", nicRef("nic"), ""), poolEntry("rg_otherip", nicRef("other"), "")
	inBody := func(entries ...string) string {
		return lb("Standard", internalFrontends+`,"backendAddressPools":[{"name":"q"},`+strings.Replace(poolWith("", entries...), "{", `{"name":"p",`, 1)+`]`)
	}
	failed := func(t *testing.T, emu *armemu.Emulator) {
		withBehavior(behavior.Behavior{FailedParent: behavior.Rejected})(t, emu)
		setFaults(t, emu, `rules: [{match: {kind: put, path: "**/kubernetes", nth: 1}, action: {operation: {fail: {code: InternalServerError}}}}]`)
		sendRequest(t, emu, http.MethodPut, lbID, lbBody(`{"name":"web"}`))
	}
	adds := []ruleViolation{
		{bad: poolWith("", member, stranger)},
		{bad: poolWith("", stranger)},
		{bad: poolWith("")},
		{bad: poolWith("", poolEntry("renamed", nicRef("nic"), ""))},
		{bad: poolWith("", `{"properties":{`+nicRef("nic")+`}}`)},
	}
	for i := range adds {
		adds[i].rule, adds[i].prepare, adds[i].id = "interfaces-join-by-themselves", withInterface, pool
		adds[i].good, adds[i].message = poolWith("", poolEntry("RG_nicIP", nicRef("nic"), "Down")), "adds/modifies/deletes"
	}
	return append(adds, []ruleViolation{
		{rule: "interfaces-join-by-themselves", prepare: withInterface, id: lbID + "/backendAddressPools/fresh", bad: poolWith("", stranger), good: poolWith(""), message: "fresh"},
		{rule: "interface-once", prepare: withInterface, id: user, bad: inBody(`{"properties":{` + nicRef("nic") + `}}`), good: inBody(member), message: "DuplicateIpConfigurationReferenceOnBackendAddressPool"},
		{rule: "interface-once", prepare: withInterface, id: user, bad: inBody(member, poolEntry("again", nicRef("nic"), "")), good: inBody(), message: "more than once"},
		{
			rule: "interface-admin-state", prepare: withBehavior(behavior.Behavior{InterfaceAdminState: behavior.Rejected}), id: pool,
			bad: poolWith("", poolEntry("rg_nicip", nicRef("nic"), "Down")), good: poolWith("", poolEntry("rg_nicip", nicRef("nic"), "None")), message: "user/backendAddressPools/p",
		},
		{rule: "sync-mode-automatic", bad: poolWith(`"syncMode":"Automatic",`+inVNet, addressIn(vnetID, "a", "10.0.0.1")), good: poolWith(`"syncMode":"Manual",`+inVNet, addressIn(vnetID, "a", "10.0.0.1")), message: "web"},
		{rule: "parent-not-failed", prepare: failed, bad: poolBody("10.0.0.1"), goodID: lbID, good: lbBody(`{"name":"web"}`), message: "Run PUT operation on the parent"},
	}...)
}

func TestInterfaceAdminStates(t *testing.T) {
	for answer, want := range map[behavior.Result]string{
		behavior.Accepted: "rg_nicip=Down", behavior.Ignored: "rg_nicip=-", behavior.Rejected: "rg_nicip=-",
	} {
		emu := newCloud(t, armemu.Options{})
		withBehavior(behavior.Behavior{InterfaceAdminState: answer})(t, emu)
		sendRequest(t, emu, http.MethodPut, userPool("p"), poolWith("", poolEntry("rg_nicip", nicRef("nic"), "Down")))
		if got := poolAdminStates(t, emu, userPool("p")); got != want {
			t.Errorf("Down is %s: %s, want %s", answer, got, want)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, userPool("p"), `{"properties":{"tunnelInterfaces":[]}}`))
		if got := poolAdminStates(t, emu, userPool("p")); got != "rg_nicip=-" {
			t.Errorf("a write that says nothing of addresses: %s", got)
		}
	}
}

// The load balancer itself is always writable, and its pools afterwards.
func TestFailedParent(t *testing.T) {
	for answer, want := range map[behavior.Result]int{behavior.Accepted: 200, behavior.Rejected: 400} {
		emu := newCloud(t, armemu.Options{Behavior: behavior.Behavior{FailedParent: answer}})
		setFaults(t, emu, `rules: [{match: {kind: put, nth: 1}, action: {operation: {fail: {code: InternalServerError}}}}]`)
		sendRequest(t, emu, http.MethodPut, lbID+"/backendAddressPools/spare", poolBody("10.0.0.2"))
		if a := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1")); a.status != want {
			t.Errorf("%s: %d %s", answer, a.status, a.raw)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, lbID, lbBody(`{"name":"web"},{"name":"spare"}`)))
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.3")))
	}
}

// Order, reserved addresses and initial admin states are accepted.
func TestAddressesStayAsSent(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	putResource(t, emu, vnetID+"/subnets/far", `{"properties":{"addressPrefix":"10.9.0.0/16"}}`)
	far := `"subnet":{"id":"` + vnetID + `/subnets/far"}`
	pool := lbID + "/backendAddressPools/fresh"
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pool, poolWith("", poolEntry("z", ip(1)+","+far, "Drain"), poolEntry("a", ip(2)+","+far, "Down"))))
	if got := poolAdminStates(t, emu, pool); got != "z=Drain a=Down" {
		t.Errorf("got %s", got)
	}
	if raw := sendRequest(t, emu, http.MethodGet, pool, "").raw; strings.Count(raw, `"subnet":{"id":"`+vnetID+`/subnets/far"}`) != 2 {
		t.Errorf("subnets are lost: %s", raw)
	}
}
