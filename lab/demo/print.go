// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

// width is the maximum line width in columns.
const width = 80

// colour is a terminal escape sequence.
type colour string

const (
	plain  colour = ""
	bold   colour = "\x1b[1m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	dim    colour = "\x1b[2m"
	reset         = "\x1b[0m"
)

// printer writes lines of the form "12.3s tag text". It filters non-printable characters.
type printer struct {
	out    io.Writer
	began  time.Time
	colour bool
	// gone, if set, is called at the first write error.
	gone func(error)
}

// newPrinter enables colors on a terminal unless NO_COLOR is set or it has no colors.
func newPrinter(out io.Writer) *printer {
	file, ok := out.(*os.File)
	return &printer{
		out: out, began: time.Now(),
		colour: ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd())), //nolint:gosec // a descriptor fits
	}
}

// line prints text after the time and a tag, wrapped and indented.
func (p *printer) line(c colour, tag, text string) {
	p.row(c, fmt.Sprintf("%6.1fs", time.Since(p.began).Seconds()), tag, text)
}

// detail prints text below a line.
func (p *printer) detail(text string) { p.row(plain, "       ", "", text) }

func (p *printer) row(c colour, stamp, tag, text string) {
	for _, row := range wrap(text, width-len(stamp)-2-tagWidth-1) {
		p.print(c, fmt.Sprintf("%s  %-*s %s", stamp, tagWidth, tag, row))
		stamp, tag = strings.Repeat(" ", len(stamp)), ""
	}
}

const tagWidth = len("cluster")

// plainly prints lines without time and tag.
func (p *printer) plainly(lines ...string) {
	for _, l := range lines {
		for _, row := range wrap(l, width) {
			p.print(plain, row)
		}
	}
}

// verbatim prints lines without wrapping; non-printable characters become spaces.
func (p *printer) verbatim(c colour, lines ...string) {
	for _, l := range lines {
		p.print(c, printable(l))
	}
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

func (p *printer) print(c colour, row string) {
	row = strings.TrimRight(row, " ")
	if p.colour && c != plain {
		row = string(c) + row + reset
	}
	if _, err := fmt.Fprintln(p.out, row); err != nil && p.gone != nil {
		tell := p.gone
		p.gone = nil
		tell(err)
	}
}

// wrap breaks text at spaces into rows of at most columns and cuts longer words. Control characters
// become spaces.
func wrap(text string, columns int) []string {
	text = printable(text)
	var rows []string
	rest := []rune(text)
	for len(rest) > columns {
		cut := columns
		for cut > columns/2 && rest[cut] != ' ' {
			cut--
		}
		if rest[cut] != ' ' {
			cut = columns
		}
		rows = append(rows, strings.TrimRight(string(rest[:cut]), " "))
		rest = []rune(strings.TrimLeft(string(rest[cut:]), " "))
	}
	return append(rows, string(rest))
}

// pools prints the sync state of the pools.
func (p *printer) pools(pools []poolLevel) {
	tag, c := "pools", yellow
	if allLevel(pools) {
		tag, c = "level", green
	}
	p.line(c, tag, levelText(pools))
}

// poolColumn fits "web 100/100 +10".
const poolColumn = 16

func levelText(pools []poolLevel) string {
	var b strings.Builder
	for _, pool := range pools {
		fmt.Fprintf(&b, "%-*s", poolColumn, pool)
	}
	return strings.TrimRight(b.String(), " ")
}
