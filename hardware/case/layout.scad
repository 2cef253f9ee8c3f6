// Where each part lies: measures, and what follows of them and of the parts' sizes (parts.scad, made of ../bom.csv). mm.
// x along the box, y from the front wall to the back, z up; the origin is the base's outer corner, without the strap's lugs.
include <parts.scad>

wall = 2.4;            // six lines of a 0.4 mm nozzle
clearance = 1;         // around each part
lid_gap = 0.3;         // between the lid's lip and the base
lip = 4;               // how deep the lip reaches into the base
rib = 1.6;
post = 7;              // of the lid's screws
standoff = 5;          // under the Pi
antenna_clear = 25;    // from an antenna to the nearest battery, board or hub along the box
plugs = 35;            // for USB plugs, right of the Pi
battery_plugs = 30;
side_plug = 14;        // between the Pi's power connector and the front wall: an angled plug
slot = 3.5;            // air
pitch = 6;
lug = 9;               // out of each end
strap_slot = [27, 3.5]; // for the strap's 25 mm
pi_hole_edge = 3.5;    // every Pi of 85 by 56 mm: raspberrypi.com, mechanical drawings
pi_hole_pitch = [58, 49];
led_collar = 9;
flat_off = 0.5;        // of an antenna on the floor, from the end wall

// [Pi, modem, battery, hub, antenna, fan]; a stick is its own antenna.
ids = build == "paper" ? ["pi-2b", "stick-zte-mf833v", "battery-10ah", "", "", ""] :
    build == "standard" ? ["pi-4b", "carrier-mpcie-usb", "battery-20ah", "hub-powered", "antenna-lte", ""] :
    build == "5g" ? ["pi-5", "carrier-m2-usb", "battery-26ah", "", "antenna-5g", "fan-40"] :
    assert(false, str("no build ", build));
function held(n) = ids[n] == "" ? [0, 0, 0] : size(ids[n]);
pi = held(0); modem = held(1); battery = held(2); hub = held(3); antenna = held(4); fan = held(5);
has_hub = ids[3] != ""; has_antenna = ids[4] != ""; has_fan = ids[5] != "";

// An end of the box: antennas on the wall, free space, the modem on edge. The antenna that lies flat reaches further in.
air_above = fan[2] + 2 * clearance + lip;
high = max(modem[1] + 2 * clearance + lip, standoff + pi[2] + air_above, max(battery[2], hub[2]) + air_above,
    has_antenna && has_fan ? 2 * antenna[1] + 2 * clearance : 0);
end = max(modem[2] + antenna_clear + 2 * clearance, has_antenna ? antenna[1] + flat_off + antenna_clear : 0);
middle = max(pi[0] + plugs + (has_hub ? hub[0] + 2 * clearance : 0), battery[0] + battery_plugs) + 2 * clearance;
deep = side_plug + max(pi[1], hub[1]) + rib + 4 * clearance + battery[1];
outer = [middle + 2 * end + 2 * wall, deep + 2 * wall, high + 2 * wall]; // with the lid, without the lugs
inner_top = outer[2] - wall;

x0 = wall + end + clearance;
pi_at = [x0, wall + side_plug, wall + standoff];
battery_at = [x0, outer[1] - wall - clearance - battery[1], wall];
hub_at = [x0 + pi[0] + plugs + clearance, wall + side_plug, wall];
modem_in = (has_antenna ? antenna_clear : 0) + clearance + wall;
modem_y = (outer[1] - modem[0]) / 2;
led = [pi_at[0] + pi[0] + plugs / 2, pi_at[1] + pi[1] / 2];

// Main and diversity do not lie in one plane: on the end wall and the floor beside it; four a modem also on the lid.
function antennas(left) = let (y = (outer[1] - antenna[0]) / 2, four = has_fan,
        on_wall = left ? wall : outer[0] - wall - antenna[2], flat = left ? wall + flat_off : outer[0] - wall - antenna[1] - flat_off)
    concat(
        [for (n = four ? [0, 1] : [0]) [ids[4], "antenna", [on_wall, y, wall + 1 + n * antenna[1]], [antenna[2], antenna[0], antenna[1]]]],
        [for (z = four ? [wall, inner_top - antenna[2]] : [wall]) [ids[4], "antenna", [flat, y, z], [antenna[1], antenna[0], antenna[2]]]]);

// [id, kind, at, size]
parts = concat(
    [[ids[0], "pi", pi_at, pi], [ids[2], "battery", battery_at, battery]],
    has_hub ? [[ids[3], "hub", hub_at, hub]] : [],
    has_fan ? [[ids[5], "fan", [pi_at[0] + (pi[0] - fan[0]) / 2, pi_at[1] + (pi[1] - fan[1]) / 2, inner_top - fan[2]], fan]] : [],
    [for (x = [modem_in, outer[0] - modem_in - modem[2]]) [ids[1], "modem", [x, modem_y, wall], [modem[2], modem[0], modem[1]]]],
    has_antenna ? concat(antennas(true), antennas(false)) : [],
    [["status-led", "led", [led[0] - 2.5, led[1] - 2.5, outer[2] - 1 - 8.6], size("status-led")]]);

holes = [for (i = [0, 1], j = [0, 1]) [pi_at[0] + pi_hole_edge + i * pi_hole_pitch[0], pi_at[1] + pi_hole_edge + j * pi_hole_pitch[1]]];
plug_x = led[0];
near = wall + post / 2;
far = [outer[0] - near, outer[1] - near];
posts = [[near, near], [far[0], near], [near, far[1]], far, [plug_x + 15, near], [x0 + battery[0] + post / 2 + clearance, far[1]]];
ethernet = [plug_x - 9, wall + standoff, 18, 16];                           // x, z, width, height in the front wall
charge = [x0 + battery[0] + battery_plugs - 16, wall + 4, 13, 8];           // the same in the back wall
function close(x, other, width) = x < other + width + 2 && other < x + slot + 2;
inlets = [for (n = [0 : floor((middle - 2 * clearance) / pitch - 0.01) - 1]) let (x = x0 + n * pitch)
    if (!close(x, ethernet[0], ethernet[2]) && !close(x, posts[4][0] - post / 2, post)) x];
inlet_z = [wall + 2, inner_top - 6];
above = has_hub ? hub_at[0] + hub[0] : pi_at[0] + pi[0];
outlets = [for (n = [0 : floor((above - pi_at[0] - 4) / pitch - 0.01) - 1]) let (x = pi_at[0] + 2 + n * pitch)
    if (!close(x, led[0] - led_collar / 2, led_collar)) x];
outlet_y = [pi_at[1] + 2, pi_at[1] + pi[1] - 2];

// What the checks of fit read (BUILD.json).
module layout() echo(layout = [["build", build], ["outer", outer], ["wall", wall], ["clearance", clearance], ["lid_gap", lid_gap],
    ["antenna_clear", antenna_clear], ["plugs", plugs], ["standoff", standoff], ["lug", lug], ["slot", slot], ["post", post],
    ["led_collar", led_collar], ["parts", parts], ["posts", posts], ["holes", holes], ["led", led], ["inlets", inlets],
    ["inlet_z", inlet_z], ["outlets", outlets], ["outlet_y", outlet_y], ["ethernet", ethernet], ["charge", charge]]);
