// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/sdk"
	"weir.dev/weir/internal/lb"
)

// The API versions of plain requests: the SDK's own of Microsoft.Network; of Microsoft.Compute one
// that has etags of scale sets and of their instances, and is in all clouds.
const (
	networkVersion = "2025-05-01"
	computeVersion = "2024-07-01"
	children       = "virtualMachines" // of a scale set: its instances
)

// childRule is what may stand below a resource: its instances, or one of them; a subnet; a connection.
var childRule = regexp.MustCompile(`^(` + children + `(/[0-9]{1,10})?|(subnets|privateEndpointConnections)/[0-9A-Za-z]([0-9A-Za-z_.-]{0,158}[0-9A-Za-z_])?)?$`)

// Resource is what a plain request is about. Its body is JSON as Azure has it, so that a write keeps
// what the SDK of today has no word for.
type Resource struct {
	// ID without a name stands for all of its type in the resource group.
	ID lb.ResourceID
	// Child is virtualMachines/3 for an instance of a scale set, and virtualMachines for all.
	Child string
	New   bool // it does not exist, and is made
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
func (c *Client) Read(ctx context.Context, r Resource) (json.RawMessage, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	this := &call{op: opGet, target: r.target()}
	resp, err := c.send(withCall(ctx, this), http.MethodGet, r.ID.Type, r.path(), nil) //nolint:bodyclose // the pipeline has read the body to its end
	if err != nil {
		return nil, classify(ctx, this, err)
	}
	var shown json.RawMessage
	if err := runtime.UnmarshalAsJSON(resp, &shown); err != nil {
		return nil, classify(ctx, this, err)
	}
	return r.decoded(shown)
}

// List returns all resources of a type in a resource group, or all instances of a scale set. An
// error carries a *fault.Fault: stale if the group or the scale set is gone.
func (c *Client) List(ctx context.Context, r Resource) ([]json.RawMessage, error) {
	type page struct {
		Value []*json.RawMessage `json:"value"`
		Next  string             `json:"nextLink"`
	}
	if r.ID.Name != "" {
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	pages := runtime.PagingHandler[page]{
		More: func(p page) bool { return p.Next != "" },
		Fetcher: func(ctx context.Context, last *page) (p page, err error) {
			at := r.path()
			if last != nil {
				at = last.Next
			}
			resp, err := c.send(ctx, http.MethodGet, r.ID.Type, at, nil) //nolint:bodyclose // the pipeline has read the body to its end
			if err != nil {
				return p, err
			}
			return p, runtime.UnmarshalAsJSON(resp, &p)
		},
	}
	return list(ctx, c, r.target(), func(*sdk.Clients) *runtime.Pager[page] {
		return runtime.NewPager(pages)
	}, func(p page) []*json.RawMessage { return p.Value }, func(item *json.RawMessage) (json.RawMessage, error) {
		var one struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(*item, &one) != nil || !strings.EqualFold(path.Dir(one.ID), r.path()) {
			return nil, notThat(r.target())
		}
		return *item, nil
	})
}

// Write writes a resource that was read or is New, with http.MethodPut or, of some of its fields,
// http.MethodPatch, or deletes it, guarded by its etag; waits until Azure is done; and returns what Azure then
// shows. An error carries a *fault.Fault. One whose code is OutcomeUnknown says that the write may
// have landed.
func (c *Client) Write(ctx context.Context, r Resource, method, etag string, body any) (json.RawMessage, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	this := &call{op: opWith[method], target: r.target(), creates: r.New}
	if this.op == "" {
		return nil, refusal(codeInvalidID, fmt.Errorf("%s writes no resource", method))
	}
	if err := c.checkRead(this.target, this.op, !r.New, etag); err != nil {
		return nil, err
	}
	shown, err := c.begin(ctx, this, method, r.path(), etag, body)
	if err != nil || this.op == opDelete {
		return nil, err
	}
	return r.decoded(shown)
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
	this := &call{op: opPost, target: target{id: scaleSet}}
	_, err := c.begin(ctx, this, http.MethodPost, scaleSet.String()+"/manualupgrade", "", map[string]any{"instanceIds": instances})
	return err
}

// begin sends a write and waits until Azure is done with it.
func (c *Client) begin(ctx context.Context, this *call, method, at, etag string, body any) (json.RawMessage, error) {
	return carryOut(ctx, c, this, etag, func(ctx context.Context, _ *sdk.Clients) (*runtime.Poller[json.RawMessage], error) {
		resp, err := c.send(ctx, method, this.id.Type, at, body) //nolint:bodyclose // the pipeline has read the body to its end
		if err != nil {
			return nil, err
		}
		return runtime.NewPoller(resp, c.plain.Pipeline(), &runtime.NewPollerOptions[json.RawMessage]{
			FinalStateVia: runtime.FinalStateViaAzureAsyncOp, // the end of an action says all; a write is read anew
		})
	})
}

// opWith is what a write is called.
var opWith = map[string]string{http.MethodPut: opPut, http.MethodPatch: opPatch, http.MethodDelete: opDelete}

// unfailing are the statuses of answers that are no errors.
var unfailing = map[string][]int{http.MethodGet: {200}, http.MethodPut: {200, 201}, http.MethodPatch: {200, 201}, http.MethodPost: {200, 202}, http.MethodDelete: {200, 202, 204}}

// send sends one request through the pipeline that all requests take: to a path, or, for the next
// page of a list, to a link.
func (c *Client) send(ctx context.Context, method, kind, at string, body any) (resp *http.Response, err error) {
	ctx, end := runtime.StartSpan(ctx, "Plain."+method, c.plain.Tracer(), nil)
	defer func() { end(err) }()
	link := !strings.HasPrefix(at, "/")
	if !link {
		at = runtime.JoinPaths(c.plain.Endpoint(), at)
	}
	req, err := runtime.NewRequest(ctx, method, at)
	if err != nil {
		return nil, err
	}
	if !link {
		version := networkVersion
		if strings.HasPrefix(kind, "Microsoft.Compute/") {
			version = computeVersion
		}
		req.Raw().URL.RawQuery = "api-version=" + version
	}
	req.Raw().Header.Set("Accept", "application/json")
	if body != nil {
		if err := runtime.MarshalAsJSON(req, body); err != nil {
			return nil, err
		}
	}
	if resp, err = c.plain.Pipeline().Do(req); err != nil {
		return nil, err
	}
	if !runtime.HasStatusCode(resp, unfailing[method]...) {
		return nil, runtime.NewResponseError(resp)
	}
	return resp, nil
}

// decoded refuses an answer that is not the resource.
func (r Resource) decoded(shown json.RawMessage) (json.RawMessage, error) {
	var is struct {
		ID         *string         `json:"id"`
		Name       *string         `json:"name"`
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(shown, &is) != nil || is.Properties == nil || !shows(r.path(), is.ID, is.Name) {
		return nil, notThat(r.target())
	}
	return shown, nil
}
