// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/test/referencepage"
)

// resourceType is a resource type that is read and written as a whole.
type resourceType struct {
	kind, id string // kind as in Azure's messages
	body     string
	get      func(context.Context, *Client) error
	write    func(context.Context, *Client) error
	make     func(context.Context, *Client) error
	remove   func(context.Context, *Client) error
}

// resourceTypes returns all types, read and ready to write.
func resourceTypes(t *testing.T) []resourceType {
	t.Helper()
	b, ip, g := readBalancer(t), readPublicIP(t, richPublicIP), readSecurityGroup(t, richSecurityGroup)
	return []resourceType{
		{
			kind: "Microsoft.Network/loadBalancers/kubernetes", id: balancer, body: busyBalancer,
			get:   func(ctx context.Context, c *Client) error { _, err := c.GetLoadBalancer(ctx, kubernetes); return err },
			write: func(ctx context.Context, c *Client) error { _, err := c.PutLoadBalancer(ctx, b); return err },
			make: func(ctx context.Context, c *Client) error {
				_, err := c.PutLoadBalancer(ctx, lb.LoadBalancer{ID: kubernetes, Location: "eastus", SKU: lb.Standard})
				return err
			},
			remove: func(ctx context.Context, c *Client) error { return c.DeleteLoadBalancer(ctx, b) },
		},
		{
			kind: "Microsoft.Network/publicIPAddresses/web", id: webIP, body: richPublicIP,
			get:   func(ctx context.Context, c *Client) error { _, err := c.GetPublicIP(ctx, webPublicIP); return err },
			write: func(ctx context.Context, c *Client) error { _, err := c.PutPublicIP(ctx, ip); return err },
			make: func(ctx context.Context, c *Client) error {
				_, err := c.PutPublicIP(ctx, lb.PublicIP{ID: webPublicIP, Location: "eastus", SKU: lb.Standard, Static: true})
				return err
			},
			remove: func(ctx context.Context, c *Client) error { return c.DeletePublicIP(ctx, ip) },
		},
		{ // neither created nor deleted
			kind: "Microsoft.Network/networkSecurityGroups/nsg", id: groupOfNodes.String(), body: richSecurityGroup,
			get: func(ctx context.Context, c *Client) error {
				_, err := c.GetSecurityGroup(ctx, groupOfNodes)
				return err
			},
			write: func(ctx context.Context, c *Client) error { _, err := c.PutSecurityGroup(ctx, g); return err },
		},
		plainType("Microsoft.Network/networkInterfaces/n1", http.MethodPut, Resource{ID: plainID(lb.TypeNetworkInterface, "n1")}),
		plainType("Microsoft.Compute/virtualMachineScaleSets/blue", http.MethodPatch, blueSet),
		plainType("Microsoft.Compute/virtualMachineScaleSets/blue/virtualMachines/3", http.MethodPut, blueInstance),
	}
}

func plainID(kind, name string) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: kind, Name: name}
}

var (
	blueSet      = Resource{ID: plainID(lb.TypeScaleSet, "blue")}
	blueInstance = Resource{ID: plainID(lb.TypeScaleSet, "blue"), Child: "virtualMachines/3"}
)

// plainType is a type with an opaque body that is neither created nor deleted.
func plainType(kind, method string, r Resource) resourceType {
	return resourceType{
		kind: kind, id: r.armPath(), body: `{"id":"` + r.armPath() + `","etag":"\"1\"","properties":{"provisioningState":"Succeeded"}}`,
		get: func(ctx context.Context, c *Client) error { _, err := c.ReadResource(ctx, r); return err },
		write: func(ctx context.Context, c *Client) error {
			_, err := c.WriteResource(ctx, r, method, asRead(r), `"1"`, bodyOf(map[string]any{"properties": map[string]any{}}))
			return err
		},
	}
}

// tableOp maps a PATCH to the column of the PUT.
func tableOp(op string) string {
	if op == opPatch {
		return opPut
	}
	return op
}

// resourceRow is one response and its cost for each request.
type resourceRow struct {
	name   string
	answer reply // {kind}, {body} and {id} are replaced
	code   string
	after  time.Duration // of Retry-After

	get, put, make, poll, result, remove, removing expectedResult
}

// resourceRequestKind is the request that gets a row's response.
type resourceRequestKind struct {
	title, op string
	call      func(resourceType) func(context.Context, *Client) error
	fate      func(resourceRow) expectedResult
}

var resourceRequestKinds = []resourceRequestKind{
	{"GET", opGet, func(w resourceType) func(context.Context, *Client) error { return w.get }, func(r resourceRow) expectedResult { return r.get }},
	{"PUT", opPut, func(w resourceType) func(context.Context, *Client) error { return w.write }, func(r resourceRow) expectedResult { return r.put }},
	{"PUT, new", opPut, func(w resourceType) func(context.Context, *Client) error { return w.make }, func(r resourceRow) expectedResult { return r.make }},
	{"poll", opPoll, func(w resourceType) func(context.Context, *Client) error { return w.write }, func(r resourceRow) expectedResult { return r.poll }},
	{"result", opResult, func(w resourceType) func(context.Context, *Client) error { return w.write }, func(r resourceRow) expectedResult { return r.result }},
	{"DELETE", opDelete, func(w resourceType) func(context.Context, *Client) error { return w.remove }, func(r resourceRow) expectedResult { return r.remove }},
	{"poll of a DELETE", opPoll, func(w resourceType) func(context.Context, *Client) error { return w.remove }, func(r resourceRow) expectedResult { return r.removing }},
}

// resourceRowOf converts a row about pools.
func resourceRowOf(r wireRow) resourceRow {
	w := resourceRow{name: r.name, answer: r.answer, code: r.code, get: r.get, put: r.put, make: r.put, poll: r.poll, result: r.result, remove: r.put, removing: r.poll}
	if r.after != nil {
		w.after = *r.after
	}
	return w
}

func resourceTable() []resourceRow {
	const notFound = "The Resource '{kind}' under resource group 'rg' was not found."
	missing := func(name, code, message string) resourceRow {
		return resourceRowOf(wireRow{name: name, answer: newReply(404, errorBody(code, message)), code: code, get: gone, put: gone}.unknownAfter())
	}
	own := missing("it itself", "ResourceNotFound", notFound)
	group := missing("its resource group", "ResourceGroupNotFound", "Resource group 'rg' could not be found.")
	unnamed := missing("something, not named", "NotFound", "Not found.")
	for _, r := range []*resourceRow{&own, &group, &unnamed} {
		r.make, r.remove = refused1, fine // a new resource cannot be missing, a deleted one may be
	}
	empty := reply{status: 204}
	rows := []resourceRow{
		{name: "it", answer: newReply(200, "{body}"), get: fine, put: fine, make: fine, result: fine, remove: fine},
		{name: "it", answer: newReply(201, "{body}"), code: "Created", get: refused1, put: fine, make: fine, result: fine, remove: unknown},
		{name: "another one", answer: newReply(200, `{"id":"{id}2","etag":"e","properties":{}}`), get: unknown, put: unknown, make: unknown, poll: unknown, result: unknown, remove: fine, removing: unknown},
		{name: "`{}`", answer: newReply(200, "{}"), get: unknown, put: unknown, make: unknown, poll: unknown, result: unknown, remove: fine, removing: unknown},
		{name: "no body", answer: empty, code: "No Content", get: refused1, put: unknown, make: unknown, poll: unknown, result: unknown, remove: fine, removing: unknown},
		{name: "without a place to poll", answer: reply{status: 202}, code: "Accepted", get: refused1, put: unknown, make: unknown, poll: unknown, result: unknown, remove: unknown, removing: unknown},
		own, group, unnamed,
		resourceRowOf(rejectedRow("something else", newReply(404, errorBody("ResourceNotFound", "The Resource 'Microsoft.Network/virtualNetworks/v' under resource group 'rg' was not found.")), "ResourceNotFound")),
		resourceRowOf(rejectedRow("`InUse…CannotBeDeleted`", errorReply(400, "InUseSomethingCannotBeDeleted"), "InUseSomethingCannotBeDeleted")),
		resourceRowOf(rejectedRow("`AuthorizationFailed`", errorReply(403, "AuthorizationFailed"), "AuthorizationFailed")),
		resourceRowOf(workerRow("`AnotherOperationInProgress`", errorReply(409, "AnotherOperationInProgress"), "AnotherOperationInProgress")),
		resourceRowOf(workerRow("`PreconditionFailedEtagMismatch`", errorReply(412, "PreconditionFailed", "PreconditionFailedEtagMismatch", "x"), "PreconditionFailedEtagMismatch")),
		resourceRowOf(throttledRow("`SubscriptionRequestsThrottled`", errorReply(429, "SubscriptionRequestsThrottled"), "SubscriptionRequestsThrottled")),
		resourceRowOf(withRetryAfter20(throttledRow("`SubscriptionRequestsThrottled`, Retry-After 20", errorReply(429, "SubscriptionRequestsThrottled"), "SubscriptionRequestsThrottled"))),
		resourceRowOf(withRetryAfter20(throttledRow("`RetryableErrorDueToAnotherOperation`, Retry-After 20", newReply(429, lockBody), "RetryableErrorDueToAnotherOperation"))),
		resourceRowOf(sdkRow("Internal Server Error", reply{status: 500}, "Internal Server Error")),
		resourceRowOf(sdkRow("Service Unavailable", reply{status: 503}, "Service Unavailable")),
		resourceRowOf(wireRow{name: "answer lost", answer: reply{err: errReset}, get: unreachable, put: unknown, poll: unfollowed, result: unfollowed}),
		resourceRowOf(wireRow{name: "reset within the body, status 200", answer: reply{status: 200, body: busyBalancer, torn: errReset}, get: unreachable, put: unknown, poll: unfollowed, result: unfollowed}),
	}
	for _, end := range operationResults() {
		r := resourceRowOf(end)
		r.get, r.put, r.make, r.remove, r.result, r.after = notDriven, notDriven, notDriven, notDriven, notDriven, 0
		rows = append(rows, r)
	}
	return rows
}

// drive makes the request of a column and returns how often it was sent.
func (r resourceRow) drive(t *testing.T, w resourceType, c resourceRequestKind) (n int, elapsed time.Duration, err error) {
	t.Helper()
	answer := r.answer
	answer.body = strings.NewReplacer("{kind}", w.kind, "{body}", w.body, "{id}", w.id).Replace(answer.body)
	given, wire := 0, &fakeARM{}
	wire.answer = func(_ int, req *http.Request) reply {
		switch op := tableOp(callOf(req.Context()).op); {
		case op == c.op && (given == 0 || !c.fate(r).once):
			given++
			return answer
		case op == opPut:
			return reply{status: 201, body: strings.Replace(w.body, "Succeeded", "Updating", 1), header: accepted.header}
		case op == opDelete:
			return reply{status: 202, header: accepted.header}
		case op == opPoll:
			return done
		}
		return newReply(200, w.body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	start := time.Now()
	err = c.call(w)(ctx, newClient(t, wire))
	for _, call := range wire.calls {
		if tableOp(call.op) == c.op {
			n++
		}
	}
	return n, time.Since(start), err
}

// The cost of each response for whole resources: equal for all types, and like that of pools unless
// stated otherwise.
func TestWholeResourcesOnTheWire(t *testing.T) {
	for _, w := range resourceTypes(t) {
		for _, row := range resourceTable() {
			for _, c := range resourceRequestKinds {
				if c.fate(row) == notDriven || c.call(w) == nil {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d %s/%s", w.kind, row.answer.status, row.name, c.title), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { row.check(t, w, c) })
				})
			}
		}
	}
}

func (r resourceRow) check(t *testing.T, w resourceType, c resourceRequestKind) {
	t.Helper()
	want := c.fate(r)
	n, _, err := r.drive(t, w, c)
	if n != want.requests {
		t.Errorf("%d requests, want %d", n, want.requests)
	}
	if want.class == "" {
		if err != nil {
			t.Errorf("%v, want success", err)
		}
		return
	}
	code := want.code
	if code == "" {
		code = r.code
	}
	retryAt := time.Time{}
	if r.after > 0 {
		retryAt = time.Now().Add(r.after)
	}
	if f := wantFault(t, err, want.class, code); !f.RetryAt.Equal(retryAt) {
		t.Errorf("retry at %v, want %v", f.RetryAt, retryAt)
	}
}

// renderWholes formats the measured table and fails if types differ.
func renderWholes(t *testing.T, page *strings.Builder) {
	kinds := resourceTypes(t)
	page.WriteString("\n## Resources as a whole\n\nLoad balancers and public IPs; and security groups, network interfaces, scale sets and their instances, which are neither made nor deleted.\n\n| answer |")
	for _, c := range resourceRequestKinds {
		page.WriteString(" " + c.title + " |")
	}
	page.WriteString("\n|---" + strings.Repeat("|---", len(resourceRequestKinds)) + "|\n")
	var rows referencepage.Rows
	for _, row := range resourceTable() {
		title := row.name
		if s := fmt.Sprint(row.answer.status); row.answer.status != 0 && !strings.Contains(title, s) && row.get != notDriven {
			title = s + " " + title
		}
		var cells []string
		for _, c := range resourceRequestKinds {
			cell := ""
			for _, w := range kinds {
				if c.fate(row) == notDriven || c.call(w) == nil {
					continue
				}
				measured := row.measure(t, w, c)
				if cell != "" && cell != measured {
					t.Errorf("%s, %s: %q is not the same for all", title, c.title, measured)
				}
				cell = measured
			}
			cells = append(cells, dash(cell))
		}
		rows.Add(title, strings.Join(cells, " | "))
	}
	page.WriteString(rows.String())
}

func (r resourceRow) measure(t *testing.T, w resourceType, c resourceRequestKind) (cell string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, elapsed, err := r.drive(t, w, c)
		cell = fmt.Sprint(n)
		if n > 1 {
			cell += " A"
		}
		f := armerror.FromError(err)
		if f == nil {
			cell += " done"
			if c.fate(r).once {
				cell += " after " + (elapsed - pollInterval).String()
			}
			return
		}
		cell += " " + string(f.Class)
		if f.Code == armerror.CodeOutcomeUnknown {
			cell += "?"
		}
		if parked := time.Until(f.RetryAt); parked > 0 {
			cell += ", not before " + parked.String()
		}
	})
	return cell
}
