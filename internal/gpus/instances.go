package gpus

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Instance is a machine that a cloud rents: GPUs of one kind with a host.
type Instance struct {
	Name     string    `json:"instance"`
	Provider string    `json:"provider"`
	GPU      string    `json:"gpu"` // its slug in the catalogue
	Count    int       `json:"count"`
	VCPUs    int       `json:"vcpus"`
	Memory   mem.Bytes `json:"memory_bytes"`       // of the host
	Price    float64   `json:"price_usd_per_hour"` // of the machine
	Source   string    `json:"price_source"`
	Date     string    `json:"price_date"`
	Notes    string    `json:"notes,omitempty"`
}

// Machines are the instances with the GPUs of a list, the cheapest first.
type Machines struct {
	Version   int        `json:"version"`
	Instances []Instance `json:"instances"`
}

// Machines are the instances with one of the list's GPUs.
func (l *List) Machines() *Machines {
	m := &Machines{Version: 1, Instances: []Instance{}}
	for _, one := range Instances() {
		if slices.ContainsFunc(l.GPUs, func(g GPU) bool { return g.Slug == one.GPU }) {
			m.Instances = append(m.Instances, one)
		}
	}
	slices.SortStableFunc(m.Instances, func(a, b Instance) int { return cmp.Compare(a.Price, b.Price) })
	return m
}

// Table shows them for people.
func (m *Machines) Table() *report.Table {
	t := &report.Table{Name: "instances", Title: "Machines that clouds rent", Columns: []report.Column{
		{Name: "instance", Title: "instance"}, {Name: "provider", Title: "provider"}, {Name: "gpu", Title: "gpu"},
		{Name: "count", Title: "GPUs", Unit: mem.UnitCount}, {Name: "vcpus", Title: "vCPUs", Unit: mem.UnitCount},
		{Name: "memory", Title: "host memory", Unit: mem.UnitBytes}, {Name: "price", Title: "$/h"}, {Name: "day", Title: "of"},
	}}
	for i := range m.Instances {
		one := &m.Instances[i]
		t.Add(one.Name, one.Provider, one.GPU, one.Count, one.VCPUs, one.Memory, price(one.Price), one.Date)
	}
	return t
}

//go:embed instances.csv
var instances string

var parsedInstances = sync.OnceValues(func() ([]Instance, error) { return readInstances(strings.NewReader(instances)) })

// Instances are the machines that hightide knows, in the order of their file.
func Instances() []Instance {
	all, err := parsedInstances()
	if err != nil {
		panic(err) // embedded, and a test reads it
	}
	return all
}

func readInstances(in io.Reader) (all []Instance, err error) {
	r := csv.NewReader(in)
	header, err := r.Read()
	if err != nil {
		return nil, err
	}
	for {
		fields, err := r.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		row := record{values: map[string]string{}}
		for i, name := range header {
			row.values[name] = strings.TrimSpace(fields[i])
		}
		v := row.values
		one := Instance{Name: v["instance"], Provider: v["provider"], GPU: v["gpu"], Count: int(row.number("count")),
			VCPUs: int(row.number("vcpus")), Memory: mem.Bytes(row.number("memory_GiB") * float64(mem.GiB)),
			Price: row.number("price_usd_per_hour"), Source: v["price_source"], Date: v["price_date"], Notes: v["notes"]}
		if row.err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, row.err)
		}
		all = append(all, one)
	}
}
