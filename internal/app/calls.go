// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/requestlog"
)

// CallsOptions are the flags of weir calls.
type CallsOptions struct {
	Connection Connection
	// Since is the maximum age; zero means no limit.
	Since time.Duration
	// Service and Pool are NAMESPACE/NAME; at most one is set.
	Service, Pool string
	Resource      string
	Failed        bool
	JSON          bool
	// Width is that of the terminal; 0 shortens nothing.
	Width int
	Out   io.Writer
}

// PrintCalls prints the last requests that a running Weir sent to Azure.
func PrintCalls(ctx context.Context, o CallsOptions) error {
	f, err := o.buildFilter()
	if err != nil {
		return &UsageError{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	resp, err := FetchCalls(ctx, o.Connection, f, o.Since)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Close() }()
	if o.JSON {
		_, err := io.Copy(o.Out, resp)
		return err
	}
	return printCallTable(o.Out, resp, o.Width)
}

// FetchCalls streams the calls that match f, one JSON object per line, until ctx ends. Errors are returned
// within responseTimeout.
func FetchCalls(ctx context.Context, w Connection, f requestlog.Filter, since time.Duration) (io.ReadCloser, error) {
	return w.fetch(ctx, requestlog.CallsPath, requestlog.EncodeQuery(f, since))
}

// fetch returns the body of a response of the operator server.
func (c Connection) fetch(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	at, err := url.Parse(c.Server)
	if err != nil || at.Scheme != "http" || at.Host == "" {
		return nil, &UsageError{Err: fmt.Errorf("--operator-url %q: want a URL such as %s", c.Server, LeaderServer)}
	}
	at.Path, at.RawQuery = path, query.Encode()
	ctx, end := context.WithCancelCause(ctx)
	late := time.AfterFunc(responseTimeout, func() { end(errNoResponse) })
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DialContext: c.dialWithTimeout, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}}).Do(req)
	late.Stop()
	if err != nil {
		defer end(nil)
		return nil, c.addHint(cmp.Or(context.Cause(ctx), err))
	}
	if resp.StatusCode != http.StatusOK {
		defer end(nil)
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 500)) // a partial body is good enough
		return nil, fmt.Errorf("%s: %s: %s; is it a Weir's --operator-bind-address?", c.Server, resp.Status, strings.TrimSpace(string(body)))
	}
	return &callStream{resp.Body, end}, nil
}

// responseTimeout bounds the time to the first byte.
const responseTimeout = 15 * time.Second

var errNoResponse = fmt.Errorf("no answer within %s", responseTimeout)

// LeaderServer is the default of --operator-bind-address: a loopback address on each replica.
const LeaderServer = "http://127.0.0.1:8082"

// Connection describes how to reach a running Weir.
type Connection struct {
	// Server is the URL of its --operator-bind-address.
	Server string
	// Dial connects to Server on another machine; nil means this machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// dialWithTimeout has its own timeout: http.Transport keeps dialing after the request is canceled.
func (c Connection) dialWithTimeout(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	if c.Dial == nil {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return c.Dial(ctx, network, address)
}

func (c Connection) addHint(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // drop the URL
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errNoResponse
	}
	if c.Dial == nil {
		return fmt.Errorf("no Weir responds at %s: %w; without --operator-url the leader is found by its Lease, and reached through the API server", c.Server, err)
	}
	if errors.Is(err, errNoResponse) {
		return fmt.Errorf("the leader: %w; check that the API server (kubectl get --raw /readyz) and the node of the leader's pod respond", err)
	}
	return err
}

// callStream is a response body; closing it cancels the request.
type callStream struct {
	io.ReadCloser

	cancel context.CancelCauseFunc
}

func (c *callStream) Close() error {
	defer c.cancel(nil)
	return c.ReadCloser.Close()
}

func (o CallsOptions) buildFilter() (requestlog.Filter, error) {
	f := requestlog.Filter{Failed: o.Failed, Resource: o.Resource}
	if o.Service != "" && o.Pool != "" {
		return f, errors.New("--service and --pool: want one of them")
	}
	if o.Since < 0 {
		return f, fmt.Errorf("--since %s: want more than 0", o.Since)
	}
	kind, flag := "Service", "--service"
	if o.Pool != "" {
		kind, flag = "BackendPool", "--pool"
	}
	if name := cmp.Or(o.Service, o.Pool); name != "" {
		namespace, own, ok := strings.Cut(name, "/")
		if !ok || namespace == "" || own == "" {
			return f, fmt.Errorf("%s %q: want NAMESPACE/NAME", flag, name)
		}
		f.Cause = requestlog.Cause{Kind: kind, Namespace: namespace, Name: own}
	}
	return f, nil
}

// printCallTable prints a request per line: in width columns at most, unless that is 0, with the ends of long names. The
// request ID is of requests that failed.
func printCallTable(out io.Writer, lines io.Reader, width int) error {
	rows := [][]string{{"TIME", "OP", "STATUS", "TOOK", "RESOURCE", "FOR", ""}}
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var c requestlog.Call
		if err := json.Unmarshal(scanner.Bytes(), &c); err != nil {
			return fmt.Errorf("line %d of the response: %w", len(rows), err)
		}
		row := callRow(c)
		if row[idColumn] != "" {
			rows[0][idColumn] = "REQUEST ID"
		}
		rows = append(rows, row)
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading the response: %w", err)
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(out, "No request matches. Only the leader sends requests to Azure: with --operator-url, check that it is the leader.")
		return err
	}
	if width > 0 {
		fitRows(rows, width)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, columnGap, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // into a string
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Columns of printCallTable.
const (
	columnGap      = 2
	resourceColumn = 4
	causeColumn    = 5
	idColumn       = 6
)

func callRow(c requestlog.Call) []string {
	status, id := fmt.Sprint(c.Status), ""
	if c.Status == 0 {
		status = "no answer"
	}
	if c.Status == 0 || c.Status >= http.StatusBadRequest {
		id = cmp.Or(c.RequestID, "-")
	}
	return []string{
		c.At.UTC().Format("15:04:05.000"), c.Op, status, c.Took.Round(time.Millisecond).String(),
		cmp.Or(describeResource(c.Resource), "-"), cmp.Or(describeCauses(c.Causes), "-"), id,
	}
}

// fitRows shortens the resources and the objects of rows, the longer column first, so that a line has at most width columns.
func fitRows(rows [][]string, width int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	over := columnGap * (len(widths) - 1)
	for _, w := range widths {
		over += w
	}
	for over -= width; over > 0 && max(widths[resourceColumn], widths[causeColumn]) > minCell; over-- {
		if widths[resourceColumn] >= widths[causeColumn] {
			widths[resourceColumn]--
		} else {
			widths[causeColumn]--
		}
	}
	for _, row := range rows[1:] {
		for _, i := range []int{resourceColumn, causeColumn} {
			row[i] = trimMiddle(row[i], widths[i])
		}
	}
}

// minCell is the least width of a shortened cell.
const minCell = 16

// trimMiddle shortens text to width characters, and keeps its ends, which names differ in.
func trimMiddle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	head := (width - 1) / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// resourceNames are kinds of resources in the words of other messages, by the path of their IDs.
var resourceNames = []struct {
	path *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`^loadBalancers/([^/]+)/backendAddressPools/([^/]+)$`), "pool $1/$2"},
	{regexp.MustCompile(`^loadBalancers/([^/]+)$`), "load balancer $1"},
	{regexp.MustCompile(`^publicIPAddresses/([^/]+)$`), "public IP $1"},
	{regexp.MustCompile(`^networkSecurityGroups/([^/]+)$`), "security group $1"},
	{regexp.MustCompile(`^privateLinkServices/([^/]+)$`), "private link service $1"},
	{regexp.MustCompile(`^networkInterfaces/([^/]+)$`), "interface $1"},
	{regexp.MustCompile(`^virtualMachines/([^/]+)$`), "machine $1"},
	{regexp.MustCompile(`^virtualMachineScaleSets/([^/]+)$`), "scale set $1"},
	{regexp.MustCompile(`^virtualMachineScaleSets/([^/]+)/virtualMachines/([^/]+)$`), "machine $1/$2"},
	{regexp.MustCompile(`^/subscriptions/[^/]+/([^/]+)$`), "$1"},
}

// describeResource returns the kind and the name of a resource, or its ID below the provider.
func describeResource(id string) string {
	short := trimResourceID(id)
	for _, n := range resourceNames {
		if n.path.MatchString(short) {
			return n.path.ReplaceAllString(short, n.name)
		}
	}
	return short
}

func trimResourceID(id string) string {
	if _, rest, ok := strings.Cut(id, "/providers/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); ok {
			return rest
		}
	}
	return id
}

func describeCauses(causes []requestlog.Cause) string {
	named := make([]string, len(causes))
	for i, c := range causes {
		kind := strings.ToLower(c.Kind)
		if kind == "backendpool" {
			kind = "pool"
		}
		named[i] = kind + " " + strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
	}
	return humanize.FormatList(named, 2)
}
