package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Nic is a network interface as a guest reports it.
type Nic struct {
	Network   string   `json:"network"`
	Addresses []string `json:"addresses"`
	// -1 for interfaces that are no device of the machine, such as those of containers.
	Device int32 `json:"device"`
}

// Machine is a virtual machine, or what is to be changed of one.
type Machine struct {
	Name       string            `json:"name"`
	UUID       string            `json:"uuid"`
	HostName   *string           `json:"hostName"`
	Nics       []Nic             `json:"nics"`
	CPUs       int32             `json:"cpus"`
	MemoryMB   int64             `json:"memoryMB"`
	GuestID    string            `json:"guestId"`
	Datacenter string            `json:"datacenter"`
	Host       string            `json:"host"`
	Off        *bool             `json:"off"`
	Template   bool              `json:"template"`
	Extra      map[string]string `json:"extra"`
}

func addMachine(ctx context.Context, v *VCenter, r *http.Request) (any, error) {
	m := Machine{CPUs: 2, MemoryMB: 4096, GuestID: "ubuntu64Guest", Datacenter: "*"}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return nil, err
	}
	if m.UUID == "" {
		// The simulator derives it from the name, and a machine that is made again is another one.
		m.UUID = uuid.NewString()
	}
	finder := find.NewFinder(v.client)
	datacenters, err := finder.DatacenterList(ctx, m.Datacenter)
	if err != nil {
		return nil, err
	}
	datacenter := datacenters[0]
	finder.SetDatacenter(datacenter)
	folders, err := datacenter.Folders(ctx)
	if err != nil {
		return nil, err
	}
	host, err := findHost(ctx, finder, m.Host)
	if err != nil {
		return nil, err
	}
	pool, err := host.ResourcePool(ctx)
	if err != nil {
		return nil, err
	}
	extra := []types.BaseOptionValue{}
	for key, value := range m.Extra {
		extra = append(extra, &types.OptionValue{Key: key, Value: value})
	}
	spec := types.VirtualMachineConfigSpec{
		Name: m.Name, GuestId: m.GuestID, NumCPUs: m.CPUs, MemoryMB: m.MemoryMB, Uuid: m.UUID,
		ExtraConfig: extra,
		Files:       &types.VirtualMachineFileInfo{VmPathName: "[LocalDS_0]"},
	}
	task, err := folders.VmFolder.CreateVM(ctx, spec, pool, host)
	if err != nil {
		return nil, err
	}
	info, err := task.WaitForResult(ctx, nil)
	if err != nil {
		return nil, err
	}
	ref := info.Result.(types.ManagedObjectReference)
	if m.Off == nil || !*m.Off {
		// The task would take longer than everything else together.
		v.update(ref, []types.PropertyChange{
			{Name: "runtime.powerState", Val: types.VirtualMachinePowerStatePoweredOn},
			{Name: "summary.runtime.powerState", Val: types.VirtualMachinePowerStatePoweredOn},
		})
	}
	m.Off, m.Host = nil, ""
	if err := v.apply(ctx, ref, m); err != nil {
		return nil, err
	}
	var created mo.VirtualMachine
	if err := object.NewVirtualMachine(v.client, ref).Properties(ctx, ref, []string{"config.uuid"}, &created); err != nil {
		return nil, err
	}
	return map[string]string{"id": ref.Value, "uuid": created.Config.Uuid}, nil
}

func findHost(ctx context.Context, finder *find.Finder, name string) (*object.HostSystem, error) {
	if name == "" {
		name = "*"
	}
	hosts, err := finder.HostSystemList(ctx, "*/"+name)
	if err != nil {
		return nil, err
	}
	return hosts[0], nil
}

// apply changes what is given.
func (v *VCenter) apply(ctx context.Context, ref types.ManagedObjectReference, m Machine) error {
	vm := object.NewVirtualMachine(v.client, ref)
	if m.Off != nil {
		state, err := vm.PowerState(ctx)
		if err != nil {
			return err
		}
		isOff := state != types.VirtualMachinePowerStatePoweredOn
		if *m.Off != isOff {
			power := vm.PowerOn
			if *m.Off {
				power = vm.PowerOff
			}
			task, err := power(ctx)
			if err != nil {
				return err
			}
			if err := task.Wait(ctx); err != nil {
				return err
			}
		}
	}
	changes := []types.PropertyChange{}
	if m.HostName != nil {
		changes = append(changes, types.PropertyChange{Name: "guest.hostName", Val: *m.HostName})
	}
	if m.Nics != nil {
		changes = append(changes, types.PropertyChange{Name: "guest.net", Val: guestNics(m.Nics)})
	}
	if m.Host != "" {
		host, err := find.NewFinder(v.client).HostSystem(ctx, "/*/host/*/"+m.Host)
		if err != nil {
			return err
		}
		moved := host.Reference()
		changes = append(changes, types.PropertyChange{Name: "runtime.host", Val: &moved},
			types.PropertyChange{Name: "summary.runtime.host", Val: &moved})
	}
	v.update(ref, changes)
	if m.Template {
		return vm.MarkAsTemplate(ctx)
	}
	return nil
}

func (v *VCenter) update(ref types.ManagedObjectReference, changes []types.PropertyChange) {
	context := v.model.Service.Context
	context.Map.AtomicUpdate(context, v.model.Map().Get(ref).(*simulator.VirtualMachine), changes)
}

func guestNics(nics []Nic) []types.GuestNicInfo {
	reported := []types.GuestNicInfo{}
	for _, nic := range nics {
		reported = append(reported, types.GuestNicInfo{
			Network: nic.Network, IpAddress: nic.Addresses, Connected: true, DeviceConfigId: nic.Device,
		})
	}
	return reported
}

func reference(r *http.Request) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "VirtualMachine", Value: r.PathValue("vm")}
}

func changeMachine(ctx context.Context, v *VCenter, r *http.Request) (any, error) {
	var m Machine
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return nil, err
	}
	return nil, v.apply(ctx, reference(r), m)
}

func destroyMachine(ctx context.Context, v *VCenter, r *http.Request) (any, error) {
	off := true
	if err := v.apply(ctx, reference(r), Machine{Off: &off}); err != nil {
		return nil, err
	}
	task, err := object.NewVirtualMachine(v.client, reference(r)).Destroy(ctx)
	if err != nil {
		return nil, err
	}
	return nil, task.Wait(ctx)
}

// attachTag makes a tag and its category if they are missing, and attaches it to what is at an inventory path.
func attachTag(ctx context.Context, v *VCenter, r *http.Request) (any, error) {
	var tag struct{ Category, Name, Path string }
	if err := json.NewDecoder(r.Body).Decode(&tag); err != nil {
		return nil, err
	}
	place, err := object.NewSearchIndex(v.client).FindByInventoryPath(ctx, tag.Path)
	if err != nil {
		return nil, err
	}
	category, err := v.tags.GetCategory(ctx, tag.Category)
	if err != nil {
		if _, err := v.tags.CreateCategory(ctx, &tags.Category{Name: tag.Category, Cardinality: "MULTIPLE"}); err != nil {
			return nil, err
		}
		if category, err = v.tags.GetCategory(ctx, tag.Category); err != nil {
			return nil, err
		}
	}
	known, err := v.tags.GetTagForCategory(ctx, tag.Name, category.ID)
	id := ""
	if err == nil {
		id = known.ID
	} else if id, err = v.tags.CreateTag(ctx, &tags.Tag{Name: tag.Name, CategoryID: category.ID}); err != nil {
		return nil, err
	}
	return nil, v.tags.AttachTag(ctx, id, place.Reference())
}
