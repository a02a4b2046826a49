// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

const instancesChild = "virtualMachines"

var childRule = regexp.MustCompile(`^(` + instancesChild + `(/[0-9]{1,10})?|(subnets|privateEndpointConnections)/[0-9A-Za-z]([0-9A-Za-z_.-]{0,158}[0-9A-Za-z_])?)?$`)

// Resource is the target of a request for packages with their own decoders.
type Resource struct {
	// ID without a name selects all resources of the type in the resource group.
	ID lb.ResourceID
	// Child is virtualMachines/3 for a scale set instance, virtualMachines for all of them.
	Child string
}

func (r Resource) asTarget() target { return target{id: r.ID, child: r.Child} }

func (r Resource) armPath() string {
	return strings.TrimRight(r.ID.String()+"/"+r.Child, "/")
}

// checkPath rejects a Resource that would change the meaning of a URL.
func (r Resource) checkPath() error {
	if !childRule.MatchString(r.Child) {
		return rejectRequest(codeInvalidID, fmt.Errorf("%q is no part of %s", r.Child, target{id: r.ID}))
	}
	return checkID(r.ID)
}

// ReadResource returns a resource.
func (c *Client) ReadResource(ctx context.Context, r Resource) (codec.Document, error) {
	if err := r.checkPath(); err != nil {
		return codec.Document{}, err
	}
	return c.getDocument(ctx, r.asTarget())
}

// ListResources returns all resources of a type in a resource group, or all instances of a scale set.
func (c *Client) ListResources(ctx context.Context, r Resource) ([]codec.Document, error) {
	if r.ID.Name != "" {
		if err := r.checkPath(); err != nil {
			return nil, err
		}
	}
	return c.listDocuments(ctx, r.asTarget())
}

// WriteResource sends a PUT, PATCH or DELETE guarded by etag, waits for the end and returns the result. A
// nil *origin creates the resource; body edits *origin, which Write may replace with a newer read.
func (c *Client) WriteResource(ctx context.Context, r Resource, method string, origin *any, etag string, body func() (any, error)) (codec.Document, error) {
	q := newPut(r.asTarget(), origin, etag, body)
	if _, err := q.encodeBody(); err != nil { // checked before the ID, which may be empty if nothing was read
		return codec.Document{}, err
	}
	if err := r.checkPath(); err != nil {
		return codec.Document{}, err
	}
	if q.method, q.call.op = method, opByMethod[method]; q.call.op == "" {
		return codec.Document{}, rejectRequest(codeInvalidID, fmt.Errorf("%s writes no resource", method))
	}
	if err := c.checkRead(q.call.target, q.call.op, *origin != nil, etag); err != nil {
		return codec.Document{}, err
	}
	return c.writeAndWait(ctx, q)
}

// UpgradeInstances upgrades instances to the whole model of a scale set and waits for the end. A 404 without
// a resource concerns an instance and is not stale.
func (c *Client) UpgradeInstances(ctx context.Context, scaleSet lb.ResourceID, instances []string) error {
	if err := checkType(lb.TypeScaleSet, scaleSet); err != nil {
		return err
	}
	for _, id := range instances {
		if err := (Resource{ID: scaleSet, Child: instancesChild + "/" + id}).checkPath(); err != nil { // "*" would select all
			return err
		}
	}
	_, err := c.writeAndWait(ctx, request{
		call: &call{op: opPost, target: target{id: scaleSet}}, method: http.MethodPost, path: scaleSet.String() + "/manualupgrade",
		body: func() (any, error) { return map[string]any{"instanceIds": instances}, nil },
	})
	return err
}

var opByMethod = map[string]string{http.MethodPut: opPut, http.MethodPatch: opPatch, http.MethodDelete: opDelete}

var successStatuses = map[string][]int{http.MethodGet: {200}, http.MethodPut: {200, 201}, http.MethodPatch: {200, 201}, http.MethodPost: {200, 202}, http.MethodDelete: {200, 202, 204}}

// sendRequest takes a path, or the link to the next page of a list.
func (d *documentClient) sendRequest(ctx context.Context, method, at, version string, body any) (resp *http.Response, err error) {
	client := d.armClients.own
	ctx, end := runtime.StartSpan(ctx, "Plain."+method, client.Tracer(), nil)
	defer func() { end(err) }()
	link := !strings.HasPrefix(at, "/")
	if !link {
		at = runtime.JoinPaths(client.Endpoint(), at)
	}
	req, err := runtime.NewRequest(ctx, method, at)
	if err != nil {
		return nil, err
	}
	if !link {
		req.Raw().URL.RawQuery = "api-version=" + version
	}
	client = d.armClients.forPath(req.Raw().URL.Path)
	req.Raw().Header.Set("Accept", "application/json")
	if body != nil {
		text, err := codec.Marshal(body)
		if err == nil {
			err = req.SetBody(streaming.NopCloser(bytes.NewReader(text)), "application/json")
		}
		if err != nil {
			return nil, err
		}
	}
	if resp, err = client.Pipeline().Do(req); err != nil {
		return nil, err
	}
	if !runtime.HasStatusCode(resp, successStatuses[method]...) {
		return nil, runtime.NewResponseError(resp)
	}
	return resp, nil
}
