// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

const children = "virtualMachines" // of a scale set: its instances

// childRule is what may stand below a resource: its instances, or one of them; a subnet; a connection.
var childRule = regexp.MustCompile(`^(` + children + `(/[0-9]{1,10})?|(subnets|privateEndpointConnections)/[0-9A-Za-z]([0-9A-Za-z_.-]{0,158}[0-9A-Za-z_])?)?$`)

// Resource is what a request is about that other packages decode.
type Resource struct {
	// ID without a name stands for all of its type in the resource group.
	ID lb.ResourceID
	// Child is virtualMachines/3 for an instance of a scale set, and virtualMachines for all.
	Child string
}

func (r Resource) target() target { return target{id: r.ID, child: r.Child} }

func (r Resource) path() string {
	return strings.TrimRight(r.ID.String()+"/"+r.Child, "/")
}

// check refuses what would mean something else as part of a URL.
func (r Resource) check() error {
	if !childRule.MatchString(r.Child) {
		return refusal(codeInvalidID, fmt.Errorf("%q is no part of %s", r.Child, target{id: r.ID}))
	}
	return checkID(r.ID)
}

// Read returns a resource as Azure shows it. An error carries a *fault.Fault: stale if it is gone.
func (c *Client) Read(ctx context.Context, r Resource) (codec.Document, error) {
	if err := r.check(); err != nil {
		return codec.Document{}, err
	}
	return c.get(ctx, r.target())
}

// List returns all resources of a type in a resource group, or all instances of a scale set. An
// error carries a *fault.Fault: stale if the group or the scale set is gone.
func (c *Client) List(ctx context.Context, r Resource) ([]codec.Document, error) {
	if r.ID.Name != "" {
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	return c.list(ctx, r.target())
}

// Write writes a resource that was read, or that is made if there is nothing in its origin, with http.MethodPut or, of some of its
// fields, http.MethodPatch, or deletes it, guarded by its etag; waits until Azure is done; and returns what Azure then
// shows. body returns what to send: an edit of what is in origin, which may be read anew. An error carries
// a *fault.Fault. One whose code is OutcomeUnknown says that the write may have landed.
func (c *Client) Write(ctx context.Context, r Resource, method string, origin *any, etag string, body func() (any, error)) (codec.Document, error) {
	q := put(r.target(), origin, etag, body)
	if _, err := q.encoded(); err != nil { // before its id: what was not read may have none
		return codec.Document{}, err
	}
	if err := r.check(); err != nil {
		return codec.Document{}, err
	}
	if q.method, q.call.op = method, opWith[method]; q.call.op == "" {
		return codec.Document{}, refusal(codeInvalidID, fmt.Errorf("%s writes no resource", method))
	}
	if err := c.checkRead(q.call.target, q.call.op, *origin != nil, etag); err != nil {
		return codec.Document{}, err
	}
	return c.carryOut(ctx, q)
}

// Upgrade has instances of a scale set brought to its model, and waits until Azure is done. It
// brings them all that the model says. An error carries a *fault.Fault, as that of Write; a 404 that
// names nothing is about one of the instances, and not stale.
func (c *Client) Upgrade(ctx context.Context, scaleSet lb.ResourceID, instances []string) error {
	if err := checkType(lb.TypeScaleSet, scaleSet); err != nil {
		return err
	}
	for _, id := range instances {
		if err := (Resource{ID: scaleSet, Child: children + "/" + id}).check(); err != nil { // "*" would be all
			return err
		}
	}
	_, err := c.carryOut(ctx, request{
		call: &call{op: opPost, target: target{id: scaleSet}}, method: http.MethodPost, path: scaleSet.String() + "/manualupgrade",
		body: func() (any, error) { return map[string]any{"instanceIds": instances}, nil },
	})
	return err
}

// opWith is what a write is called.
var opWith = map[string]string{http.MethodPut: opPut, http.MethodPatch: opPatch, http.MethodDelete: opDelete}

// unfailing are the statuses of answers that are no errors.
var unfailing = map[string][]int{http.MethodGet: {200}, http.MethodPut: {200, 201}, http.MethodPatch: {200, 201}, http.MethodPost: {200, 202}, http.MethodDelete: {200, 202, 204}}

// send sends one request through the pipeline that all requests take: to a path, or, for the next
// page of a list, to a link.
func (d *documents) send(ctx context.Context, method, at, version string, body any) (resp *http.Response, err error) {
	ctx, end := runtime.StartSpan(ctx, "Plain."+method, d.plain.Tracer(), nil)
	defer func() { end(err) }()
	link := !strings.HasPrefix(at, "/")
	if !link {
		at = runtime.JoinPaths(d.plain.Endpoint(), at)
	}
	req, err := runtime.NewRequest(ctx, method, at)
	if err != nil {
		return nil, err
	}
	if !link {
		req.Raw().URL.RawQuery = "api-version=" + version
	}
	req.Raw().Header.Set("Accept", "application/json")
	if body != nil {
		if err := runtime.MarshalAsJSON(req, body); err != nil {
			return nil, err
		}
	}
	if resp, err = d.plain.Pipeline().Do(req); err != nil {
		return nil, err
	}
	if !runtime.HasStatusCode(resp, unfailing[method]...) {
		return nil, runtime.NewResponseError(resp)
	}
	return resp, nil
}
