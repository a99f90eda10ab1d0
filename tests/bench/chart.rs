use crate::results::{Chart, readable};
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use std::error::Error;
use std::io;
use std::path::Path;

const SIZE: (u32, u32) = (800, 480);
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(120, 120, 120),
];

pub fn draw(directory: &Path, chart: &Chart) -> Result<(), Box<dyn Error>> {
    let points = || chart.lines.iter().flat_map(|(_, points)| points.iter().copied()).filter(|(_, y)| y.is_finite());
    let range = |values: Vec<f64>, above: f64| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        low / 1.5..high * above
    };
    if points().count() == 0 {
        return Ok(());
    }
    let file = directory.join(format!("{}.svg", chart.name));
    let area = SVGBackend::new(&file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut builder = ChartBuilder::on(&area);
    builder.caption(&chart.title, ("sans-serif", 20)).margin(12).x_label_area_size(44).y_label_area_size(80);
    let [xs, ys] = [points().map(|(x, _)| x).collect(), points().map(|(_, y)| y).collect()];
    if chart.is_over_time {
        let most = |values: Vec<f64>| values.into_iter().fold(1e-9, f64::max);
        let plane = builder.build_cartesian_2d(0.0..most(xs), 0.0..most(ys) * 1.15)?;
        lines(plane, chart)?;
    } else {
        let plane = builder.build_cartesian_2d(range(xs, 1.5).log_scale(), range(ys, 20.0).log_scale())?;
        lines(plane, chart)?;
    }
    area.present()?;
    Ok(())
}

fn lines<'a, X, Y>(
    mut plane: ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    chart: &'a Chart,
) -> Result<(), DrawingAreaErrorKind<io::Error>>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let number = |value: &f64| if *value < 100.0 { value.to_string() } else { readable(*value) };
    plane
        .configure_mesh()
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .light_line_style(BLACK.mix(0.05))
        .draw()?;
    for ((name, points), colour) in chart.lines.iter().zip(COLOURS.iter().cycle()) {
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(4);
        plane
            .draw_series(line)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    plane
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
